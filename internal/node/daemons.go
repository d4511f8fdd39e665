package node

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/proxyward/proxyward/runtimes"
)

// pollInterval between two questions to a daemon that is starting.
const pollInterval = 200 * time.Millisecond

// Daemons asks the runtimes behind their sockets.
type Daemons struct{ Node *Node }

// Ready waits until the daemon answers on its socket, and returns its name and version. A runtime
// that has no CRI socket is not asked.
func (d Daemons) Ready(ctx context.Context, runtime runtimes.Runtime) (string, error) {
	if runtime.API != runtimes.PullByCRI {
		return "", nil
	}
	conn, err := d.dial(runtime)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	client := criapi.NewRuntimeServiceClient(conn)
	for {
		version, err := client.Version(ctx, &criapi.VersionRequest{}, grpc.WaitForReady(true))
		if err == nil {
			return version.GetRuntimeName() + " " + version.GetRuntimeVersion(), nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("asking %q for its version: %w", runtime.Socket, err)
		case <-time.After(pollInterval):
		}
	}
}

// Creating lists the containers that were made and not started yet.
func (d Daemons) Creating(ctx context.Context, runtime runtimes.Runtime) ([]string, error) {
	if runtime.API != runtimes.PullByCRI {
		return nil, nil
	}
	conn, err := d.dial(runtime)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	list, err := criapi.NewRuntimeServiceClient(conn).ListContainers(ctx, &criapi.ListContainersRequest{
		Filter: &criapi.ContainerFilter{State: &criapi.ContainerStateValue{State: criapi.ContainerState_CONTAINER_CREATED}},
	})
	if err != nil {
		return nil, fmt.Errorf("asking %q for containers in creation: %w", runtime.Socket, err)
	}
	var ids []string
	for _, c := range list.GetContainers() {
		ids = append(ids, c.GetId())
	}
	return ids, nil
}

func (d Daemons) dial(runtime runtimes.Runtime) (*grpc.ClientConn, error) {
	socket, err := d.Node.Path(runtime.Socket)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return nil, fmt.Errorf("opening the socket %q: %w", runtime.Socket, err)
	}
	return conn, nil
}
