package canarytest

import (
	"context"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	namespacesapi "github.com/containerd/containerd/api/services/namespaces/v1"
	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	"github.com/containerd/containerd/api/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/google/go-containerregistry/pkg/name"
)

// otherNamespace is where a daemon keeps what it has elsewhere.
const otherNamespace = "moby"

type imageService struct {
	criapi.UnimplementedImageServiceServer
	runtime *runtime
}

func (s imageService) PullImage(ctx context.Context, req *criapi.PullImageRequest) (*criapi.PullImageResponse, error) {
	id, err := s.runtime.pull(ctx, req.GetImage().GetImage())
	if err != nil {
		if ctx.Err() != nil { // as containerd's services say it (errdefs)
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &criapi.PullImageResponse{ImageRef: id}, nil
}

func (s imageService) RemoveImage(_ context.Context, req *criapi.RemoveImageRequest) (*criapi.RemoveImageResponse, error) {
	if err := s.runtime.remove(req.GetImage().GetImage()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &criapi.RemoveImageResponse{}, nil
}

func (s imageService) ImageStatus(_ context.Context, req *criapi.ImageStatusRequest) (*criapi.ImageStatusResponse, error) {
	s.runtime.mu.Lock()
	defer s.runtime.mu.Unlock()
	found := s.runtime.find(req.GetImage().GetImage())
	if len(found) == 0 {
		return &criapi.ImageStatusResponse{}, nil
	}
	image := &criapi.Image{Id: found[0].id, Pinned: s.runtime.config.Pinned == found[0].name}
	for _, layer := range found[0].content.Layers {
		image.Size += uint64(layer.Size)
	}
	for _, i := range found {
		ref, err := name.ParseReference(i.name)
		if err != nil {
			continue // only its identifier is left
		}
		image.RepoTags = append(image.RepoTags, i.name)
		image.RepoDigests = append(image.RepoDigests, ref.Context().Name()+"@"+i.manifest)
	}
	return &criapi.ImageStatusResponse{Image: image}, nil
}

type runtimeService struct {
	criapi.UnimplementedRuntimeServiceServer
	runtime *runtime
}

func (s runtimeService) ListContainers(context.Context, *criapi.ListContainersRequest) (*criapi.ListContainersResponse, error) {
	answer := &criapi.ListContainersResponse{}
	if image := s.runtime.config.InUse; image != "" {
		answer.Containers = []*criapi.Container{{Id: "workload", Image: &criapi.ImageSpec{Image: image}}}
	}
	return answer, nil
}

type contentService struct {
	contentapi.UnimplementedContentServer
	runtime *runtime
}

func namespaceOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if values := md.Get("containerd-namespace"); len(values) > 0 {
		return values[0]
	}
	return ""
}

func (s contentService) List(_ *contentapi.ListContentRequest, stream contentapi.Content_ListServer) error {
	s.runtime.mu.Lock()
	defer s.runtime.mu.Unlock()
	answer := &contentapi.ListContentResponse{}
	if namespaceOf(stream.Context()) == otherNamespace {
		for _, digest := range s.runtime.config.Elsewhere {
			answer.Info = append(answer.Info, &contentapi.Info{Digest: digest})
		}
		return stream.Send(answer)
	}
	for digest, raw := range s.runtime.blobs {
		answer.Info = append(answer.Info, &contentapi.Info{Digest: digest, Size: int64(len(raw))})
	}
	return stream.Send(answer)
}

func (s contentService) ListStatuses(context.Context, *contentapi.ListStatusesRequest) (*contentapi.ListStatusesResponse, error) {
	return &contentapi.ListStatusesResponse{}, nil
}

func (s contentService) Info(_ context.Context, req *contentapi.InfoRequest) (*contentapi.InfoResponse, error) {
	s.runtime.mu.Lock()
	defer s.runtime.mu.Unlock()
	raw, ok := s.runtime.blobs[req.GetDigest()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no blob %s", req.GetDigest())
	}
	return &contentapi.InfoResponse{Info: &contentapi.Info{
		Digest: req.GetDigest(), Size: int64(len(raw)),
		Labels: map[string]string{"containerd.io/gc.ref.snapshot.overlayfs": "sha256:"},
	}}, nil
}

func (s contentService) Read(req *contentapi.ReadContentRequest, stream contentapi.Content_ReadServer) error {
	s.runtime.mu.Lock()
	defer s.runtime.mu.Unlock()
	raw, ok := s.runtime.blobs[req.GetDigest()]
	if !ok {
		return status.Errorf(codes.NotFound, "no blob %s", req.GetDigest())
	}
	return stream.Send(&contentapi.ReadContentResponse{Data: raw})
}

type imagesService struct {
	imagesapi.UnimplementedImagesServer
	runtime *runtime
}

func (s imagesService) Get(_ context.Context, req *imagesapi.GetImageRequest) (*imagesapi.GetImageResponse, error) {
	s.runtime.mu.Lock()
	defer s.runtime.mu.Unlock()
	found := s.runtime.find(req.GetName())
	if len(found) == 0 {
		return nil, status.Errorf(codes.NotFound, "no image %s", req.GetName())
	}
	return &imagesapi.GetImageResponse{Image: &imagesapi.Image{
		Name: req.GetName(), Target: &types.Descriptor{Digest: found[0].manifest},
	}}, nil
}

type namespacesService struct {
	namespacesapi.UnimplementedNamespacesServer
	runtime *runtime
}

func (s namespacesService) List(context.Context, *namespacesapi.ListNamespacesRequest) (*namespacesapi.ListNamespacesResponse, error) {
	return &namespacesapi.ListNamespacesResponse{Namespaces: []*namespacesapi.Namespace{{Name: "k8s.io"}, {Name: otherNamespace}}}, nil
}

type snapshotsService struct {
	snapshotsapi.UnimplementedSnapshotsServer
	runtime *runtime
}

func (s snapshotsService) Stat(_ context.Context, req *snapshotsapi.StatSnapshotRequest) (*snapshotsapi.StatSnapshotResponse, error) {
	s.runtime.mu.Lock()
	defer s.runtime.mu.Unlock()
	made, ok := s.runtime.snapshots[req.GetKey()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no snapshot %s", req.GetKey())
	}
	return &snapshotsapi.StatSnapshotResponse{Info: &snapshotsapi.Info{Name: req.GetKey(), CreatedAt: timestamppb.New(made)}}, nil
}
