//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CRI talks to a node's container runtime over its socket, so that what it asks
// for is done by the daemon in the daemon's environment.
type CRI struct {
	conn    *grpc.ClientConn
	Runtime runtimeapi.RuntimeServiceClient
	Images  runtimeapi.ImageServiceClient
}

// ContainerdSocket is where containerd serves the CRI in a node.
const ContainerdSocket = "/run/containerd/containerd.sock"

// CRI connects to the runtime that serves at socket in the node; empty means
// [ContainerdSocket]. It waits until the runtime says that it is ready.
func (n *Node) CRI(ctx context.Context, socket string) (*CRI, error) {
	if socket == "" {
		socket = ContainerdSocket
	}
	conn, err := grpc.NewClient("unix://"+n.Live()+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return nil, fmt.Errorf("connecting to %q of node %q: %w", socket, n.Name, err)
	}
	c := &CRI{conn: conn, Runtime: runtimeapi.NewRuntimeServiceClient(conn), Images: runtimeapi.NewImageServiceClient(conn)}
	err = eventually(ctx, 30*time.Second, fmt.Sprintf("waiting for %q of node %q", socket, n.Name), func() error {
		_, err := c.Runtime.Version(ctx, &runtimeapi.VersionRequest{})
		return err
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// Close ends the connection.
func (c *CRI) Close() error { return c.conn.Close() }

// Pull pulls an image by the node's daemon and returns the runtime's name of
// it. The login may be nil.
func (c *CRI) Pull(ctx context.Context, ref string, login *runtimeapi.AuthConfig) (string, error) {
	r, err := c.Images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: ref}, Auth: login})
	if err != nil {
		return "", fmt.Errorf("pulling %q: %w", ref, err)
	}
	return r.GetImageRef(), nil
}

// Remove removes an image; one that is not there is no error.
func (c *CRI) Remove(ctx context.Context, ref string) error {
	if _, err := c.Images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: ref}}); err != nil {
		return fmt.Errorf("removing image %q: %w", ref, err)
	}
	return nil
}

// Login is the login that a registry asks for, nil where it asks for none.
func (r *Registry) Login() *runtimeapi.AuthConfig {
	if r.User == "" {
		return nil
	}
	return &runtimeapi.AuthConfig{Username: r.User, Password: r.Password}
}

// DockerSocket is where dockerd serves its API in a node.
const DockerSocket = "/run/docker.sock"

// UnixClient makes an HTTP client for a Unix socket in the node; the host of a
// URL is not looked at.
func (n *Node) UnixClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", n.Live()+socket)
		},
		DisableKeepAlives: true,
	}}
}
