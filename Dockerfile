# highwater with its Java and its jars: no network is needed to run it.
#   docker build --tag highwater .
#   docker run --rm --volume /var/log/kafka:/logs:ro --volume highwater:/data highwater audit /logs
# It runs as a user: a folder of the host that is mounted at /data has to be writable for user 10001.
FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN python -m venv /opt/highwater \
    && /opt/highwater/bin/pip install --no-cache-dir --constraint /src/requirements.lock /src \
    && /opt/highwater/bin/highwater doctor --fetch \
    && rm -rf /src
RUN useradd --uid 10001 --create-home highwater && install --directory --owner 10001 --group 10001 /data
ENV PATH=/opt/highwater/bin:$PATH
USER 10001
WORKDIR /data
ENTRYPOINT ["highwater"]
