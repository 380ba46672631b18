"""A completion line of 2.8 in JSON form as 2.7 would have printed it: the one form is the oracle of the other."""

from __future__ import annotations

import re
from typing import Any

import orjson

_BUFFERS = ("assignment", "metadata")


def as_text(message: str) -> str:
    """A message ``Completed request:{json}`` in text form."""
    line = orjson.loads(message.removeprefix("Completed request:"))
    head, request, response = line["requestHeader"], line["request"], line["response"]
    api = head["requestApiKeyName"]
    if api == "PRODUCE":
        sizes = [
            f"{topic['name']}-{data['index']}={data['recordsSizeInBytes']}"
            for topic in request["topicData"]
            for data in topic["partitionData"]
        ]
        asked = f"{{acks={request['acks']},timeout={request['timeoutMs']},partitionSizes=[{','.join(sizes)}]}}"
        answered = _struct(response).replace("{name=", "{topic=").replace("{index=", "{partition=")
        answered = answered.replace("log_append_time_ms=", "log_append_time=")
        answered = answered.replace(",_tagged_fields={}", "")  # no version that was printed had any
    else:
        asked, answered = _struct(request), _struct(response)
    times = {name.removesuffix("Ms"): value for name, value in line.items() if name.endswith("TimeMs")}
    return (
        f"Completed request:RequestHeader(apiKey={api}, apiVersion={head['requestApiVersion']}, "
        f"clientId={head['clientId']}, correlationId={head['correlationId']}) -- {asked},response:{answered} "
        f"from connection {line['connection']};{','.join(f'{name}:{value}' for name, value in times.items())},"
        f"securityProtocol:{line['securityProtocol']},principal:{line['principal']},listener:{line['listener']},"
        "clientInformation:ClientInformation(softwareName=a, softwareVersion=1.0)"
    )


def _struct(value: Any) -> str:
    if isinstance(value, dict):
        tagged = []
        if "divergingEpoch" in value or "currentLeader" in value:
            value = dict(value)
            for tag, name in enumerate(("divergingEpoch", "currentLeader")):
                if name in value:
                    tagged.append(f"{tag}={_struct(value.pop(name))}")
        fields = [_field(name, inner) for name, inner in value.items()]
        return "{" + ",".join([*fields, f"_tagged_fields={{{', '.join(tagged)}}}"]) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_struct, value)) + "]"
    if value is None or isinstance(value, bool):
        return orjson.dumps(value).decode()
    return str(value)


def _field(name: str, value: Any) -> str:
    if name in ("recordsSizeInBytes", "recordSetSizeInBytes"):
        return f"record_set=FileRecords(size={value}, file=/data/t-0/00000000000000000000.log, start=0, end={value})"
    if name in _BUFFERS and isinstance(value, str):
        return f"{name}=java.nio.HeapByteBuffer[pos=0 lim=9 cap=9]"
    return f"{re.sub('[A-Z]', lambda letter: '_' + letter[0].lower(), name)}={_struct(value)}"
