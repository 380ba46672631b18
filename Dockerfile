# highwater with its Java and its jars: no network is needed to run it.
#   docker build --tag highwater .
#   docker run --rm --volume /var/log/kafka:/logs:ro --volume "$PWD:/data" highwater audit /logs
FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN python -m venv /opt/highwater \
    && /opt/highwater/bin/pip install --no-cache-dir --constraint /src/requirements.lock /src \
    && /opt/highwater/bin/highwater doctor --fetch \
    && rm -rf /src
ENV PATH=/opt/highwater/bin:$PATH
WORKDIR /data
ENTRYPOINT ["highwater"]
