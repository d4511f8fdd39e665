# Two images from the programs in bin/ (make build), each with one static program and nothing else.
# The program is built outside: no base image is needed, and what runs is what was tested.

FROM scratch AS proxyward
COPY bin/proxyward /proxyward
USER 65532:65532
ENTRYPOINT ["/proxyward"]

# The agent is root on its node and says so.
FROM scratch AS proxyward-agent
COPY bin/proxyward-agent /proxyward-agent
USER 0:0
ENTRYPOINT ["/proxyward-agent"]
