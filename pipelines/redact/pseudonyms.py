"""Pseudonyms of names: equal names have equal ones, and without the key no name can be recovered. Pure.

A pseudonym follows from the name and the key alone, unless two names fall on the same one: then the one whose hash is
smaller has it, and the other the next that is free. So with a key of one's own a name is called the same in every
report, but for rare clashes. Numbers have six digits.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

TOPIC, GROUP, TRANSACTIONAL_ID, CLIENT, PRINCIPAL = "topic", "group", "transactional-id", "client", "principal"
HOST, CLUSTER, TOPIC_ID, NAME, ADDRESS = "host", "cluster", "topic-id", "name", "address"
#: A name that is known as several kinds is taken for the first of these, everywhere.
KINDS = (TOPIC, GROUP, TRANSACTIONAL_ID, CLIENT, PRINCIPAL, HOST, CLUSTER, TOPIC_ID, NAME)

_NUMBERS = 1_000_000
#: RFC 5737. RFC 2544's range takes what does not fit.
_DOCUMENTATION = tuple(map(IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))
_FURTHER = IPv4Network("198.18.0.0/15")
_DOCUMENTATION_6 = IPv6Network("2001:db8::/32")
_UUID_CHARS = 22

#: What Kafka itself is called by.
_PUBLIC = {
    TOPIC: re.compile(
        r"__(?:consumer_offsets|transaction_state|cluster_metadata|share_group_state|remote_log_metadata)"
    ),
    CLIENT: re.compile(
        r"broker-\d+-fetcher-\d+|ReplicaFetcherThread-\d+-\d+|(?:admin|Admin)[cC]lient-\d+|(?:producer|consumer)-\d+|"
        r"raft-client-\d+|broker-\d+-txn-marker-sender|AddPartitionsManager-client-\d+|rdkafka"
    ),
    PRINCIPAL: re.compile(r"User:ANONYMOUS|ANONYMOUS"),
    HOST: re.compile(r"localhost"),
    CLUSTER: re.compile(r"unknown"),
    # Of the metadata log, and of none.
    TOPIC_ID: re.compile(r"A{21}[AQ]"),
}


class Pseudonyms:
    """Pseudonyms under one key. Equal names get equal pseudonyms.

    Args:
        key: secret of any length. A person with the key can test which name has a pseudonym.
        names: names known beforehand, by kind.
        addresses: IP addresses known beforehand.
    """

    def __init__(self, key: bytes, names: Mapping[str, Iterable[str]], addresses: Iterable[str] = ()) -> None:
        self._key = key
        self._kinds: dict[str, str] = {}
        for kind in KINDS:
            for name in names.get(kind, ()):
                self._kinds.setdefault(name, kind)
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._addresses: dict[IPv4Address, IPv4Address] = {}
        for name in sorted(self._kinds, key=lambda name: self._digest(self._kinds[name], name)):
            self.name(self._kinds[name], name)
        known = {address for text in addresses if isinstance(address := ip_address(text), IPv4Address)}
        for address in sorted(known, key=lambda address: self._digest(ADDRESS, str(address))):
            self.address(str(address))

    @property
    def known(self) -> Mapping[str, str]:
        """Return the pseudonyms of all names so far."""
        return self._names

    def name(self, kind: str, name: str) -> str:
        """Return the pseudonym of `name`, treated as a name of `kind`."""
        if name not in self._names:
            self._names[name] = self._make_pseudonym(self._kinds.setdefault(name, kind), name)
        return self._names[name]

    def _make_pseudonym(self, kind: str, name: str) -> str:
        if not name or (kind in _PUBLIC and _PUBLIC[kind].fullmatch(name)):
            return name
        digest = self._digest(kind, name)
        if kind in (CLUSTER, TOPIC_ID) and len(name) == _UUID_CHARS:
            return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")
        prefix = "User:" if kind == PRINCIPAL and name.startswith("User:") else ""
        number = int.from_bytes(digest[:8], "big")
        while (pseudonym := f"{prefix}{kind}-{number % _NUMBERS:06}") in self._taken:
            number += 1
        self._taken.add(pseudonym)
        return pseudonym

    def address(self, text: str) -> str:
        """Return a replacement from the IP ranges for documentation. Loopback and the like are kept."""
        address = ip_address(text)
        if address.is_loopback or address.is_unspecified:
            return text
        digest = int.from_bytes(self._digest(ADDRESS, str(address)), "big")
        if isinstance(address, IPv6Address):
            return str(_DOCUMENTATION_6[digest % _DOCUMENTATION_6.num_addresses])
        if address not in self._addresses:
            free = _find_free(set(self._addresses.values()), digest)
            self._addresses[address] = free
        return str(self._addresses[address])

    def identity(self, text: str) -> str:
        """Return a hash in place of a hash of a name: short names could be found by trying all of them."""
        return self._digest("identity", text).hex()[: max(len(text), 16)]

    def _digest(self, kind: str, name: str) -> bytes:
        return hmac.digest(self._key, f"{kind}\0{name}".encode("utf-8", "surrogatepass"), sha256().name)


def _find_free(taken: set[IPv4Address], start: int) -> IPv4Address:
    hosts = [network[number] for network in _DOCUMENTATION for number in range(1, 255)]
    for ranges in (hosts, _FURTHER):
        size = len(ranges) if isinstance(ranges, list) else ranges.num_addresses
        for step in range(size):
            if (address := ranges[(start + step) % size]) not in taken:
                return address
    raise OverflowError("more addresses than the ranges for documentation and benchmarks have")
