# One image for every process of Presage; what a container runs is said in docker-compose.yml. `make images` builds them.
# Digests are those by which other projects name the same versions (docs/deployment.md); `make digests` adds those that are missing.

FROM node:24.9.0-slim@sha256:0cce74a5708f603925e2bf01929da8d71e92b5e2493fcfb662d5a8ffed2d8ef1 AS pages
WORKDIR /build
COPY package.json .npmrc ./
# The site serves one file of each package (api/site/assets.py); the rest of them is some 120 MB. Scanners of images find
# packages by package.json.
RUN npm install --omit=dev --ignore-scripts --no-audit --no-fund --no-package-lock \
    && for file in lightweight-charts/dist/lightweight-charts.standalone.production.js lightweight-charts/LICENSE \
        lightweight-charts/package.json mermaid/dist/mermaid.min.js mermaid/LICENSE mermaid/package.json; do \
        mkdir -p "kept/${file%/*}" && cp "node_modules/$file" "kept/$file"; done

FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d AS python
# The image has no bytecode of the standard library. None is written later, and none is compared with its source: the
# file systems are read-only, and layers may change the times of files.
RUN python -m compileall -q --invalidation-mode unchecked-hash /usr/local/lib/python3.11

FROM python AS build
# Without compiled bytecode the first import of Dagster takes 4 to 8 s instead of one, in each new container.
ENV UV_COMPILE_BYTECODE=1 PYC_INVALIDATION_MODE=UNCHECKED_HASH UV_LINK_MODE=copy UV_NO_CACHE=1
WORKDIR /app
COPY requirements.lock requirements-dev.lock ./
RUN sed -n '/^uv==/,/# via/p' requirements-dev.lock > /tmp/uv.lock \
    && python -m venv /opt/tools && /opt/tools/bin/pip install --no-cache-dir --require-hashes -r /tmp/uv.lock \
    && python -m venv /opt/presage
RUN /opt/tools/bin/uv pip install --python /opt/presage/bin/python --require-hashes -r requirements.lock
COPY . .
RUN /opt/tools/bin/uv pip install --python /opt/presage/bin/python --no-deps --no-build-isolation \
        --editable . --editable clients/python \
    && /opt/presage/bin/python -m compileall -q --invalidation-mode unchecked-hash \
        alembic api cli clients/python config orchestration sql upstream \
    && mkdir -p /opt/dagster && cp dagster.yaml /opt/dagster/dagster.yaml \
    && chmod -R a+rX /app

# Caddy, run by a user that owns its certificates.
FROM caddy:2.10.2-alpine@sha256:4c6e91c6ed0e2fa03efd5b44747b625fec79bc9cd06ac5235a779726618e530d AS proxy
RUN chown -R 10001:10001 /data /config
USER 10001:10001

# pgBackRest with its own loader and libraries, as the database's image has another C library.
FROM debian:13.1-slim@sha256:a347fd7510ee31a84387619a492ad6c8eb0af2f2682b916ff3e643eb076f925a AS pgbackrest
RUN apt-get update && apt-get install --yes --no-install-recommends pgbackrest=2.55.1-1 \
    && mkdir -p /kept/lib && cp /usr/bin/pgbackrest /kept/program \
    && cp -L $(ldd /usr/bin/pgbackrest | grep -o '/[^ ]*') /kept/lib/ \
    && printf '#!/bin/sh\nexec /opt/pgbackrest/lib/ld-linux-* --inhibit-cache --library-path /opt/pgbackrest/lib --argv0 "$0" /opt/pgbackrest/program "$@"\n' > /kept/pgbackrest \
    && chmod 755 /kept/pgbackrest

# The database, which archives from inside its container; the same image takes the base backups.
FROM timescale/timescaledb:2.19.3-pg17 AS database
COPY --from=pgbackrest /kept /opt/pgbackrest
COPY --chmod=755 sql/backup/base/container.sh /usr/local/bin/presage-pgbackrest
RUN install -d -o postgres -g postgres -m 700 /backups /restored
USER postgres

FROM python
RUN groupadd --gid 10001 presage && useradd --uid 10001 --gid presage --home-dir /app --no-create-home presage \
    && install --directory --owner presage --group presage /exports
COPY --from=build /opt/presage /opt/presage
COPY --from=build /opt/dagster /opt/dagster
COPY --from=build /app /app
COPY --from=pages /build/kept /app/node_modules
ENV PATH=/opt/presage/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    DAGSTER_HOME=/opt/dagster DAGSTER_DISABLE_TELEMETRY=yes GX_ANALYTICS_ENABLED=false PRESAGE_DATA_DIR=/tmp/presage
WORKDIR /app
USER 10001:10001
CMD ["presage", "--help"]
