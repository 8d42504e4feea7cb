# Two images: `docker build --target operator .` and `docker build --target consumer .`
#
# The consumer's is for one line of Spark, `--build-arg SPARK_LINE=`: 4.1 has S3, Iceberg and Delta, 4.2 has S3 and Delta,
# 4.3 has S3. The default is the newest line that has both table formats (docs/images.md).
#
# A network with a certificate authority of its own puts its bundle into the context as `ca.crt`: pip and Maven trust it
# while building, and it is in neither image. Dependencies are installed from constraints/hashes/ (`make hashes`) before the code is
# there; an archive with another hash is refused. The code is the last layer of each image, alone and a few hundred kilobytes:
# the lab relies on that to bring a change of code to a cluster without the gigabyte below it (lab/sluice_lab/machine/loading.py).
#
# To pin what is below: `--build-arg BASE=debian:bookworm-slim@sha256:…` (docs/security.md). What an image says of itself:
# `--build-arg VERSION=…`, REVISION, SOURCE.

ARG SPARK_LINE=4.1
ARG BASE=debian:bookworm-slim
FROM ${BASE} AS python
RUN apt-get update -q \
 && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends python3.11 \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 LANG=C.UTF-8


# Everything that builds is in /opt/tools and stays here; what is shipped is made in /opt/venv.
FROM python AS build
RUN apt-get update -q \
 && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends python3.11-venv
COPY constraints/hashes/build.txt ca.cr[t] /build/
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_DEFAULT_TIMEOUT=60 PIP_ROOT_USER_ACTION=ignore
RUN if [ -e /build/ca.crt ]; then printf '[global]\ncert = /build/ca.crt\n' >/etc/pip.conf; fi \
 && python3.11 -m venv /opt/tools \
 && /opt/tools/bin/pip install --quiet --require-hashes -r /build/build.txt
WORKDIR /build


FROM build AS code
COPY LICENSE README.md pyproject.toml ./
COPY consumer consumer
COPY operator operator
RUN /opt/tools/bin/pip install --quiet --no-deps --no-build-isolation --target /code . \
 && rm -r /code/bin


FROM scratch AS code-layer
COPY --from=code /code /opt/venv/lib/python3.11/site-packages


# Without pip: nothing can be installed into the operator.
FROM build AS operator-dependencies
COPY constraints/hashes/operator.txt ./
RUN python3.11 -m venv --without-pip /opt/venv \
 && /opt/tools/bin/pip --python /opt/venv/bin/python install --quiet --require-hashes -r operator.txt \
 && rm -r /opt/venv/lib/python3.11/site-packages/kubernetes/aio


FROM python AS operator-base
# An arena of malloc's for each of 16 threads keeps what large objects took: 300 pods of 480 KB were 241 MiB at the peak, and are 212 of the chart's 256.
ENV MALLOC_ARENA_MAX=2
COPY --from=operator-dependencies /opt/venv /opt/venv
USER 65532:65532
ENTRYPOINT ["python", "-m", "sluice_operator"]


FROM operator-base AS operator
ARG BASE
ARG VERSION
ARG REVISION
ARG SOURCE
LABEL org.opencontainers.image.title="sluice-operator" \
      org.opencontainers.image.description="Operator for PySpark consumers of Amazon Kinesis" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="$BASE" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.source="$SOURCE"
COPY --from=code /code /opt/venv/lib/python3.11/site-packages


# pip stays in this one, for those who build on it. Left out, 150 MB: tests, C++ headers, the Scala shell for Spark
# Connect, and the second, asynchronous copy of the Kubernetes client, which nothing of ours or Spark's loads. And the
# zip file of PySpark's sources: Spark puts it first on the path of its Python workers, where each would compile it anew
# (1.3 CPU-s instead of 0.3 until the first task); without it they find the same modules here, compiled.
FROM build AS consumer-dependencies
ARG SPARK_LINE
COPY constraints/hashes/consumer-${SPARK_LINE}.txt consumer.txt
RUN python3.11 -m venv /opt/venv \
 && /opt/tools/bin/pip --python /opt/venv/bin/python install --quiet --require-hashes -r consumer.txt \
 && cd /opt/venv/lib/python3.11/site-packages \
 && rm -r kubernetes/aio pyarrow/include pyarrow/tests pandas/tests pyspark/jars/connect-repl pyspark/python/lib \
 && find numpy -name tests -type d -prune -exec rm -rf {} +


# S3A with the parts of the AWS SDK that it needs, Iceberg and Delta: what consumer/image/jars/pom.xml says for the line.
# Maven resolves; what comes must be what constraints/hashes/ lists, no jar more and none less. Maven and its Java stay in this stage.
FROM python AS jars
COPY consumer/image/jars/pom.xml ca.cr[t] /build/
WORKDIR /build
RUN install -d /usr/local/share/ca-certificates \
 && if [ -e ca.crt ]; then csplit --quiet --prefix=/usr/local/share/ca-certificates/own- --suffix-format=%03d.crt ca.crt '/BEGIN CERT/' '{*}'; fi \
 && apt-get update -q \
 && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends maven
ARG SPARK_LINE
COPY constraints/hashes/jars-${SPARK_LINE}.txt jars.txt
RUN mvn --batch-mode --quiet --activate-profiles "$SPARK_LINE" dependency:copy-dependencies -Dmdep.useRepositoryLayout=true -DoutputDirectory=/build/found \
 && cd found && sha256sum --check --strict --quiet ../jars.txt \
 && find . -name '*.jar' -printf '%P\n' | sort >../found.txt && sed '/^#/d; s/^[^ ]*  //' ../jars.txt | sort | diff - ../found.txt \
 && install -D --mode=644 --target-directory=/jars $(cat ../found.txt) \
 && du --apparent-size --block-size=MB --summarize /jars


# Delta's log on S3 for several writers (consumer/image/delta): nothing for a line without Delta.
FROM jars AS log-store
RUN DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends openjdk-17-jdk-headless
COPY --from=consumer-dependencies /opt/venv/lib/python3.11/site-packages/pyspark/jars/hadoop-client-api-*.jar /build/hadoop/
COPY consumer/image/delta/ /build/delta/
RUN mkdir /log-store \
 && if [ -e "$(echo /jars/delta-storage-*.jar)" ]; then \
      javac --release 17 -cp "$(echo /jars/delta-storage-*.jar hadoop/*.jar | tr ' ' :)" -d classes delta/*.java \
   && jar --create --date=1980-01-01T00:00:02Z --file=/log-store/sluice-log-store.jar -C classes . ; \
    fi


FROM python AS spark
RUN apt-get update -q \
 && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends openjdk-17-jre-headless tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* \
 && groupadd --gid 185 spark \
 && useradd --uid 185 --gid 185 --home-dir /tmp --no-create-home --shell /usr/sbin/nologin spark \
 && install -d -o spark -g spark /opt/sluice/work && install -d /opt/sluice/app
COPY --from=consumer-dependencies /opt/venv /opt/venv
COPY --from=jars /jars /opt/venv/lib/python3.11/site-packages/pyspark/jars/
COPY --from=log-store /log-store /opt/venv/lib/python3.11/site-packages/pyspark/jars/
COPY consumer/image/root/ /opt/sluice/
RUN ln -s /opt/venv/lib/python3.11/site-packages/pyspark /opt/sluice/spark
COPY consumer/image/conf/ consumer/sluice_consumer/spark/log4j2.properties /opt/sluice/spark/conf/
ENV SPARK_HOME=/opt/sluice/spark PYSPARK_PYTHON=/opt/venv/bin/python PYTHONPATH=/opt/sluice/app HOME=/tmp


# Spark's classes as the JVMs need them in memory, so that drivers and executors start in half the CPU (consumer/image/training/train.py).
FROM spark AS trained
COPY consumer/image/training/ /training/
RUN mkdir /trained && python /training/train.py /trained/spark.jsa && cp --preserve /opt/sluice/spark/classpath.jar /trained/


# To build on it: `USER root`, `RUN pip install …`, `COPY … /opt/sluice/app/`, `USER 185`. Or mount code at /opt/sluice/app.
FROM spark AS consumer-base
COPY --from=trained /trained/spark.jsa /opt/sluice/
COPY --from=trained /trained/classpath.jar /opt/sluice/spark/
WORKDIR /opt/sluice/work
USER 185:185
ENTRYPOINT ["/opt/sluice/entrypoint"]


FROM consumer-base AS consumer
ARG BASE
ARG SPARK_LINE
ARG VERSION
ARG REVISION
ARG SOURCE
LABEL org.opencontainers.image.title="sluice-consumer" \
      org.opencontainers.image.description="PySpark consumer of Amazon Kinesis: driver, executors and migration" \
      dev.sluice.spark-line="$SPARK_LINE" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="$BASE" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.source="$SOURCE"
COPY --from=code /code /opt/venv/lib/python3.11/site-packages
