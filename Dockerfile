# syntax=docker/dockerfile:1
# The service and the command, on the packages that are published. docs/install.md describes how to run it.
ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
COPY . .
# The second npm ci replaces the development dependencies by those that run.
RUN npm ci && node release/build.ts \
 && npm ci --omit=dev --omit=optional --ignore-scripts \
    --workspace=packages/protocol --workspace=packages/client --workspace=packages/server --workspace=packages/cli \
 && mkdir -p /opt/baton \
 && cp -R node_modules /opt/baton/ \
 && for name in protocol client server cli; do \
      mkdir -p "/opt/baton/packages/$name" \
      && cp -R "packages/$name/package.json" "packages/$name/LICENSE" "packages/$name/dist" "/opt/baton/packages/$name/"; \
    done \
 && chmod +x /opt/baton/packages/cli/dist/main.js

FROM ${BASE}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="Baton" \
      org.opencontainers.image.description="Hands the partitions of a computed table to a fleet of workers, each to exactly one at a time" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /opt/baton /opt/baton
# A new volume takes its owner and mode from the folder: only the service can read it.
RUN ln -s /opt/baton/packages/cli/dist/main.js /usr/local/bin/baton \
 && install --directory --mode 700 --owner 10001 --group 10001 /var/lib/baton
# A container is reached from outside, so it starts with tokens only, or with BATON_ALLOW_ANONYMOUS=true.
# The compile cache of Node would be the only file outside of the volume.
ENV BATON_HOST=0.0.0.0 \
    BATON_DATA=/var/lib/baton \
    NODE_DISABLE_COMPILE_CACHE=1
USER 10001:10001
WORKDIR /var/lib/baton
VOLUME /var/lib/baton
EXPOSE 7070
STOPSIGNAL SIGTERM
# With another port, base path or TLS, set BATON_URL as well.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["baton", "ready", "--timeout", "0"]
ENTRYPOINT ["baton"]
CMD ["serve"]
