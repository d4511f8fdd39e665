package pull

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxMessage bounds an answer, as the kubelet does (16 MiB): nodes list many images.
const maxMessage = 16 << 20

// CRI pulls one image through a runtime's CRI socket. On containerd it also reads the content
// store, which the same socket serves.
type CRI struct {
	socket  string
	image   Image
	server  string
	conn    *grpc.ClientConn
	images  criapi.ImageServiceClient
	runtime criapi.RuntimeServiceClient
	store   *store
}

// OpenCRI prepares pulls of image through the socket, an absolute path. It fails when the image's
// name does not parse; a socket that does not answer shows at the first call.
func OpenCRI(socket string, image Image) (*CRI, error) {
	server, err := image.server()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("opening CRI socket %q: %w", socket, err)
	}
	return &CRI{
		socket: socket, image: image, server: server, conn: conn,
		images:  criapi.NewImageServiceClient(conn),
		runtime: criapi.NewRuntimeServiceClient(conn),
		store:   newStore(conn),
	}, nil
}

// Close ends the connection.
func (c *CRI) Close() error {
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("closing CRI socket %q: %w", c.socket, err)
	}
	return nil
}

// Clear removes the image and checks that it is gone. An image that is pinned, used by a container
// or known by another name is left alone: the error is then a *HeldError.
func (c *CRI) Clear(ctx context.Context) error {
	found, err := c.status(ctx, c.image.Name)
	if err != nil || found == nil {
		return err
	}
	if err := c.held(ctx, found); err != nil {
		return err
	}
	// CRI-O only takes the tag away when asked by tag, so the identifier follows.
	for _, ref := range []string{c.image.Name, found.GetId()} {
		if err := c.remove(ctx, ref); err != nil {
			return err
		}
	}
	for _, ref := range []string{c.image.Name, found.GetId()} {
		left, err := c.status(ctx, ref)
		if err != nil {
			return err
		}
		if left != nil {
			return fmt.Errorf("removing image %q through %q: the runtime still has it as %q: remove it by hand and see the runtime's log",
				c.image.Name, c.socket, ref)
		}
	}
	return nil
}

func (c *CRI) held(ctx context.Context, found *criapi.Image) error {
	if found.GetPinned() {
		return &HeldError{c.image.Name, "the runtime itself, which pins it"}
	}
	if others := otherNames(c.image.Name, found); len(others) > 0 {
		return &HeldError{c.image.Name, "its other names " + quoted(others)}
	}
	list, err := c.runtime.ListContainers(ctx, &criapi.ListContainersRequest{})
	if err != nil {
		return fmt.Errorf("listing containers through %q: %w", c.socket, err)
	}
	for _, container := range list.GetContainers() {
		refs := []string{container.GetImage().GetImage(), container.GetImageRef(), container.GetImageId()}
		if slices.Contains(refs, found.GetId()) || slices.Contains(refs, c.image.Name) {
			return &HeldError{c.image.Name, fmt.Sprintf("container %q", container.GetId())}
		}
	}
	return nil
}

func (c *CRI) status(ctx context.Context, ref string) (*criapi.Image, error) {
	answer, err := c.images.ImageStatus(ctx, &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: ref}})
	if status.Code(err) == codes.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for image %q through %q: %w", ref, c.socket, err)
	}
	return answer.GetImage(), nil
}

func (c *CRI) remove(ctx context.Context, ref string) error {
	_, err := c.images.RemoveImage(ctx, &criapi.RemoveImageRequest{Image: &criapi.ImageSpec{Image: ref}})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("removing image %q through %q: %w", ref, c.socket, err)
	}
	return nil
}

// Pull lists what the runtime holds, pulls, and reads what arrived. The image should have been
// cleared. The error of a failed pull wraps the runtime's gRPC status.
func (c *CRI) Pull(ctx context.Context) (Arrival, error) {
	before, err := c.store.inventory(ctx)
	if err != nil {
		return Arrival{}, err
	}
	arrival := Arrival{Began: time.Now()}
	answer, err := c.images.PullImage(ctx, &criapi.PullImageRequest{
		Image: &criapi.ImageSpec{Image: c.image.Name},
		Auth:  c.auth(),
	})
	arrival.Took = time.Since(arrival.Began)
	if err != nil {
		return arrival, fmt.Errorf("pulling image %q through %q: %w", c.image.Name, c.socket, err)
	}
	found, err := c.status(ctx, answer.GetImageRef())
	if err != nil {
		return arrival, err
	}
	if found == nil {
		return arrival, fmt.Errorf("looking for image %q after its pull through %q: the runtime does not have it", c.image.Name, c.socket)
	}
	arrival.Digest = digestOf(found)
	if before == nil {
		arrival.Size, arrival.Unpacked = int64(min(found.GetSize(), 1<<62)), true
		return arrival, nil
	}
	pulled, err := c.store.image(ctx, found.GetId())
	if err != nil {
		return arrival, err
	}
	return judge(arrival, pulled, before), nil
}

func (c *CRI) auth() *criapi.AuthConfig {
	if c.image.Username == "" {
		return nil
	}
	return &criapi.AuthConfig{
		Username:      c.image.Username,
		Password:      c.image.Password.Reveal(),
		ServerAddress: c.server,
	}
}
