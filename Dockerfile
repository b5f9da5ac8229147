# The images of Anabranch: `services` (metadata, broker, gateway, command line), `operator`, `spark`
# (drivers and executors of jobs), and for trials `dev-etcd` and `dev-s3`. Choose one by --target.
#
# Packages are fetched as pip is configured: a secret `pip` is a pip.conf, a secret `ca` the
# certificates that it may name as /run/secrets/ca. Neither stays in the image.

ARG BASE=python:3.11-slim-bookworm
# Where things are made; the same Python at the same place, with pip and venv.
ARG TOOLS=${BASE}
ARG GO=golang:1.26-bookworm

FROM ${TOOLS} AS tools
ENV PIP_CONFIG_FILE=/run/secrets/pip PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements/build.txt requirements/
# What runs has an environment without pip: what fills it stays behind.
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    python3 -m venv /opt/tools \
    && /opt/tools/bin/pip install --quiet --require-hashes --requirement requirements/build.txt \
    && python3 -m venv --without-pip /opt/anabranch \
    && echo /opt/program > "$(echo /opt/anabranch/lib/python3*/site-packages)/program.pth"

# A layer of its own: another version of ours comes without its packages.
FROM tools AS program
COPY LICENSE pyproject.toml ./
COPY operator operator
COPY services services
COPY spark-jobs/anabranch_spark spark-jobs/anabranch_spark
RUN /opt/tools/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/tools/bin/pip --python /opt/anabranch/bin/python install --quiet \
        --no-deps --no-index --target /opt/program /wheel/*.whl

# Of botocore's 400 services we call one, and sign in by the others.
FROM tools AS services-packages
COPY requirements/cluster.txt requirements/
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    /opt/tools/bin/pip --python /opt/anabranch/bin/python install --quiet \
        --require-hashes --only-binary :all: --requirement requirements/cluster.txt \
    && find /opt/anabranch/lib/python3*/site-packages/botocore/data -mindepth 1 -maxdepth 1 \
        -type d ! -name s3 ! -name 'sso*' ! -name sts ! -name signin -exec rm -r {} +

FROM tools AS operator-packages
COPY requirements/operator.txt requirements/
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    /opt/tools/bin/pip --python /opt/anabranch/bin/python install --quiet \
        --require-hashes --only-binary :all: --requirement requirements/operator.txt \
    && rm -rf /opt/anabranch/lib/python3*/site-packages/botocore/data/*/

# pyspark has no wheel: pip makes one, and keeps it for the next build. Of its 460 MB our jobs need
# about half.
FROM tools AS spark-packages
COPY requirements/spark.txt requirements/
COPY spark-jobs/image/trim.py ./
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    --mount=type=cache,id=anabranch-pip,target=/var/cache/pip \
    PIP_NO_CACHE_DIR= /opt/tools/bin/pip --python /opt/anabranch/bin/python install --quiet \
        --cache-dir /var/cache/pip \
        --require-hashes --only-binary :all: --no-binary pyspark \
        --requirement requirements/spark.txt \
    && /opt/tools/bin/python trim.py "$(echo /opt/anabranch/lib/python3*/site-packages)"

# Java as Spark needs it: without compiler, tools and fonts. Its packages write links among manuals.
FROM tools AS java
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update -q \
    && apt-get install -y -q --no-install-recommends openjdk-17-jdk-headless tini \
    && jlink --output /opt/java --compress=2 --no-header-files --no-man-pages \
        --strip-java-debug-attributes --add-modules \
java.compiler,java.desktop,java.instrument,java.management.rmi,java.naming,java.net.http,\
java.scripting,java.security.jgss,java.security.sasl,java.sql.rowset,java.xml.crypto,\
jdk.crypto.cryptoki,jdk.crypto.ec,jdk.httpserver,jdk.incubator.vector,jdk.jfr,jdk.management,\
jdk.naming.dns,jdk.net,jdk.security.auth,jdk.security.jgss,jdk.unsupported,jdk.zipfs \
    && cp --dereference /etc/ssl/certs/java/cacerts /opt/java/lib/security/cacerts

# Nothing is written at run time, not even bytecode: the root may be read-only.
FROM ${BASE} AS running
RUN echo 'anabranch:x:65532:65532::/:/usr/sbin/nologin' >> /etc/passwd \
    && echo 'anabranch:x:65532:' >> /etc/group
ENV PATH=/opt/program/bin:/opt/anabranch/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /

FROM running AS services
COPY --from=services-packages /opt/anabranch /opt/anabranch
COPY --from=program /opt/program /opt/program
ENTRYPOINT ["anabranch"]

FROM running AS operator
COPY --from=operator-packages /opt/anabranch /opt/anabranch
COPY --from=program /opt/program /opt/program
ENTRYPOINT ["anabranch-operator"]

# Kubernetes' Spark expects the user 185, and Java one with a name.
FROM running AS spark
USER 0:0
RUN echo 'spark:x:185:185::/tmp:/usr/sbin/nologin' >> /etc/passwd \
    && echo 'spark:x:185:' >> /etc/group
COPY --from=java /usr/bin/tini-static /usr/bin/tini
COPY --from=java /opt/java /opt/java
COPY --from=spark-packages /opt/anabranch /opt/anabranch
RUN ln -s /opt/anabranch/lib/python3*/site-packages/pyspark /opt/spark \
    && test -x /opt/spark/bin/spark-submit
COPY --from=program /opt/program /opt/program
ENV JAVA_HOME=/opt/java SPARK_HOME=/opt/spark SPARK_CONF_DIR=/etc/spark \
    PYSPARK_PYTHON=/opt/anabranch/bin/python
USER 185:185
WORKDIR /tmp
ENTRYPOINT ["tini", "--", "python", "-m", "anabranch_spark.entrypoint"]

FROM ${GO} AS etcd
WORKDIR /src
COPY services/anabranch/apps/processes/modules/etcd ./
RUN CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags="-s -w" \
    -o /binary/etcd go.etcd.io/etcd/server/v3

FROM ${GO} AS versitygw
WORKDIR /src
COPY services/anabranch/apps/processes/modules/versitygw ./
RUN CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags="-s -w" \
    -o /binary/versitygw github.com/versity/versitygw/cmd/versitygw

FROM scratch AS dev-etcd
COPY --from=etcd /binary/etcd /usr/local/bin/etcd
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT ["etcd"]

FROM scratch AS dev-s3
COPY --from=versitygw /binary/versitygw /usr/local/bin/versitygw
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT ["versitygw"]
