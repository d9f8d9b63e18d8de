# An image of `mnemon serve`.
#
#   docker build -t mnemon .
#   docker run --rm -v mnemon:/data mnemon key create admin --rights admin   # prints a key once
#   docker run -d --name mnemon -p 127.0.0.1:8750:8750 -v mnemon:/data --read-only --tmpfs /tmp \
#     --cap-drop ALL --security-opt no-new-privileges --memory 4g mnemon
#
# Other machines can reach the port in a container, so the server starts only when the store has a key.
# Clients that name the server by a host name need `--allow-host NAME` after the image's name and `serve`.
#
# This file has not been built: no container daemon was available where it was written.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --locked --profile dist -p mnemon-cli --bin mnemon \
 && install -D -m 755 target/dist/mnemon /out/mnemon

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --user-group --home-dir /data --shell /usr/sbin/nologin mnemon \
 && install -d -o mnemon -g mnemon -m 700 /data
COPY --from=build /out/mnemon /usr/local/bin/mnemon
USER 10001:10001
WORKDIR /data
VOLUME /data
ENV MNEMON_HOME=/data XDG_DATA_HOME=/data XDG_CONFIG_HOME=/etc
EXPOSE 8750
# The server finishes its requests within 10 seconds.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["mnemon", "top", "--ready"]
ENTRYPOINT ["mnemon"]
CMD ["serve", "--listen", "0.0.0.0:8750", "--log", "json"]
