package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	namespacesapi "github.com/containerd/containerd/api/services/namespaces/v1"
	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	// criNamespace is where containerd's CRI plugin keeps its images.
	criNamespace = "k8s.io"
	// namespaceHeader is the gRPC header by which containerd's API tells namespaces apart.
	namespaceHeader = "containerd-namespace"
	// snapshotLabel on an image's configuration names, after its prefix, the snapshotter that the
	// image was unpacked with.
	snapshotLabel = "containerd.io/gc.ref.snapshot."
	// maxDocument bounds a manifest or configuration that is read from the store (4 MiB).
	maxDocument = 4 << 20
)

// store reads containerd's content. It writes nothing.
type store struct {
	content    contentapi.ContentClient
	images     imagesapi.ImagesClient
	namespaces namespacesapi.NamespacesClient
	snapshots  snapshotsapi.SnapshotsClient
}

func newStore(conn grpc.ClientConnInterface) *store {
	return &store{
		content:    contentapi.NewContentClient(conn),
		images:     imagesapi.NewImagesClient(conn),
		namespaces: namespacesapi.NewNamespacesClient(conn),
		snapshots:  snapshotsapi.NewSnapshotsClient(conn),
	}
}

// inventory is what a runtime holds: the size of every blob, and how much of an unfinished
// download it would resume.
type inventory struct {
	blobs   map[string]int64
	partial map[string]int64
}

func within(ctx context.Context, namespace string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, namespaceHeader, namespace)
}

// inventory lists the blobs of all namespaces, for by default containerd takes a blob that another
// namespace has without transferring it. It returns nil for a runtime that serves no such API.
func (s *store) inventory(ctx context.Context) (*inventory, error) {
	list, err := s.namespaces.List(ctx, &namespacesapi.ListNamespacesRequest{})
	if status.Code(err) == codes.Unimplemented {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the runtime's namespaces: %w", err)
	}
	held := &inventory{blobs: map[string]int64{}, partial: map[string]int64{}}
	for _, namespace := range list.GetNamespaces() {
		if err := s.collect(within(ctx, namespace.GetName()), held); err != nil {
			return nil, fmt.Errorf("listing blobs of namespace %q: %w", namespace.GetName(), err)
		}
	}
	return held, nil
}

func (s *store) collect(ctx context.Context, held *inventory) error {
	stream, err := s.content.List(ctx, &contentapi.ListContentRequest{})
	if err != nil {
		return err
	}
	for {
		page, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for _, blob := range page.GetInfo() {
			held.blobs[blob.GetDigest()] = blob.GetSize()
		}
	}
	unfinished, err := s.content.ListStatuses(ctx, &contentapi.ListStatusesRequest{})
	if err != nil {
		return err
	}
	for _, ingest := range unfinished.GetStatuses() {
		// An ingest's name ends in the digest that it is for, after what kind of blob it is.
		if i := strings.LastIndex(ingest.GetRef(), "sha256:"); i >= 0 {
			held.partial[ingest.GetRef()[i:]] = ingest.GetOffset()
		}
	}
	return nil
}

// layer is one layer of an image after its pull.
type layer struct {
	digest string
	size   int64
	// stored says that its blob is in the content store.
	stored bool
	// unpacked is when its snapshot was made; zero when it has none.
	unpacked time.Time
}

// pulledImage is an image as a runtime has it.
type pulledImage struct {
	digest string
	layers []layer
}

// image reads the manifest of the image with that identifier (its configuration's digest) and where
// its layers are.
func (s *store) image(ctx context.Context, id string) (pulledImage, error) {
	ctx = within(ctx, criNamespace)
	record, err := s.images.Get(ctx, &imagesapi.GetImageRequest{Name: id})
	if err != nil {
		return pulledImage{}, fmt.Errorf("reading image %q from the runtime: %w", id, err)
	}
	manifest, manifestDigest, err := s.manifest(ctx, record.GetImage().GetTarget().GetDigest(), id)
	if err != nil {
		return pulledImage{}, err
	}
	image := pulledImage{digest: manifestDigest}
	for _, l := range manifest.Layers {
		stored, err := s.stored(ctx, l.Digest.String())
		if err != nil {
			return pulledImage{}, err
		}
		image.layers = append(image.layers, layer{digest: l.Digest.String(), size: l.Size, stored: stored})
	}
	return image, s.unpacked(ctx, id, image.layers)
}

// manifest reads the manifest at target, or the one of an index that is there for configuration id.
func (s *store) manifest(ctx context.Context, target, id string) (*v1.Manifest, string, error) {
	raw, err := s.read(ctx, target)
	if err != nil {
		return nil, "", err
	}
	var document struct {
		v1.Manifest
		Manifests []v1.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, "", fmt.Errorf("parsing manifest %q: %w", target, err)
	}
	if len(document.Manifests) == 0 {
		return &document.Manifest, target, nil
	}
	for _, child := range document.Manifests {
		if child.MediaType != types.OCIManifestSchema1 && child.MediaType != types.DockerManifestSchema2 {
			continue
		}
		raw, err := s.read(ctx, child.Digest.String())
		if status.Code(err) == codes.NotFound {
			continue // another platform's
		}
		if err != nil {
			return nil, "", err
		}
		var manifest v1.Manifest
		if err := json.Unmarshal(raw, &manifest); err != nil {
			return nil, "", fmt.Errorf("parsing manifest %q: %w", child.Digest, err)
		}
		if manifest.Config.Digest.String() == id {
			return &manifest, child.Digest.String(), nil
		}
	}
	return nil, "", fmt.Errorf("looking in index %q for the manifest of image %q: it is not there", target, id)
}

func (s *store) stored(ctx context.Context, digest string) (bool, error) {
	_, err := s.content.Info(ctx, &contentapi.InfoRequest{Digest: digest})
	if status.Code(err) == codes.NotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for blob %q: %w", digest, err)
	}
	return true, nil
}

// unpacked fills in when the layers' snapshots were made.
func (s *store) unpacked(ctx context.Context, id string, layers []layer) error {
	info, err := s.content.Info(ctx, &contentapi.InfoRequest{Digest: id})
	if err != nil {
		return fmt.Errorf("reading about configuration %q: %w", id, err)
	}
	snapshotter := ""
	for label := range info.GetInfo().GetLabels() {
		if after, ok := strings.CutPrefix(label, snapshotLabel); ok {
			snapshotter = after
		}
	}
	if snapshotter == "" {
		return nil
	}
	raw, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	var config v1.ConfigFile
	if err := json.Unmarshal(raw, &config); err != nil {
		return fmt.Errorf("parsing configuration %q: %w", id, err)
	}
	var diffs []digest.Digest
	for i, diff := range config.RootFS.DiffIDs {
		if i >= len(layers) {
			break
		}
		diffs = append(diffs, digest.Digest(diff.String()))
		snapshot, err := s.snapshots.Stat(ctx, &snapshotsapi.StatSnapshotRequest{
			Snapshotter: snapshotter, Key: identity.ChainID(diffs).String(),
		})
		if status.Code(err) == codes.NotFound {
			continue
		}
		if err != nil {
			return fmt.Errorf("asking snapshotter %q about layer %q: %w", snapshotter, layers[i].digest, err)
		}
		layers[i].unpacked = snapshot.GetInfo().GetCreatedAt().AsTime()
	}
	return nil
}

func (s *store) read(ctx context.Context, digest string) ([]byte, error) {
	stream, err := s.content.Read(ctx, &contentapi.ReadContentRequest{Digest: digest})
	if err != nil {
		return nil, fmt.Errorf("reading blob %q: %w", digest, err)
	}
	var raw []byte
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return raw, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading blob %q: %w", digest, err)
		}
		if raw = append(raw, chunk.GetData()...); len(raw) > maxDocument {
			return nil, fmt.Errorf("reading blob %q: it is larger than a manifest may be (%d bytes)", digest, maxDocument)
		}
	}
}
