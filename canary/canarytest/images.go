package canarytest

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CRIImages handles a CRI runtime's images as the kubelet does. Sites of such runtimes embed it.
type CRIImages struct{}

// Keep implements Site.
func (CRIImages) Keep(t *testing.T, socket, image string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := imageClient(t, socket).PullImage(ctx, &criapi.PullImageRequest{Image: &criapi.ImageSpec{Image: image}}); err != nil {
		t.Fatalf("pulling %q to keep it: %v", image, err)
	}
}

// Has implements Site.
func (CRIImages) Has(t *testing.T, socket, image string) bool {
	t.Helper()
	answer, err := imageClient(t, socket).ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: image}})
	if err != nil {
		t.Fatalf("asking for %q: %v", image, err)
	}
	return answer.GetImage() != nil
}

// Drop implements Site.
func (CRIImages) Drop(t *testing.T, socket, image string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // it serves cleanups too
	defer cancel()
	if _, err := imageClient(t, socket).RemoveImage(ctx, &criapi.RemoveImageRequest{Image: &criapi.ImageSpec{Image: image}}); err != nil {
		t.Fatalf("removing %q: %v", image, err)
	}
}

func imageClient(t testing.TB, socket string) criapi.ImageServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		t.Fatalf("opening %q: %v", socket, err)
	}
	t.Cleanup(func() { conn.Close() })
	return criapi.NewImageServiceClient(conn)
}
