package pull

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/proxyward/proxyward/internal/proxyenv"
)

// Image is one image and the credentials for its registry.
type Image struct {
	// Name as a person wrote it: registry/repository with a tag or a digest.
	Name string
	// Username and Password for the image's registry alone; an empty Username pulls anonymously.
	Username string
	Password proxyenv.Secret
}

// server returns the address that credentials are bound to, or an error when Name is no image.
// Runtimes compare it with the host that asks; an empty one would be offered to every host.
func (i Image) server() (string, error) {
	ref, err := name.ParseReference(i.Name)
	if err != nil {
		return "", fmt.Errorf("parsing image name %q: %w", i.Name, err)
	}
	host := ref.Context().RegistryStr()
	if host == name.DefaultRegistry {
		// The host that Docker Hub's pulls really go to, and that credentials are compared with.
		host = "registry-1.docker.io"
	}
	return "https://" + host, nil
}

// Judgement is what an arrival was judged by.
type Judgement string

// The judgements. An empty one says that it is unknown.
const (
	// ByContentStore: the blobs were not in the runtime's content store before and are now.
	ByContentStore Judgement = "content store"
	// ByUnpacked: the runtime discards blobs once they are unpacked; neither blob nor snapshot
	// existed before, and the snapshot does now.
	ByUnpacked Judgement = "snapshots unpacked by this pull"
	// ByProgress: the runtime's own report of each layer's download.
	ByProgress Judgement = "the runtime's report of downloaded layers"
)

// Arrival is what one pull brought.
type Arrival struct {
	// Digest of the manifest, or of the image where the runtime keeps no manifest.
	Digest string
	// Began is when the pull was asked for, and Took how long the runtime took.
	Began time.Time
	Took  time.Duration
	// Size of the image's layers in bytes as the registry has them; where the runtime does not
	// know it, the unpacked size, and Unpacked is true. 0 when neither is known.
	Size     int64
	Unpacked bool
	// Bytes of layers that were transferred, as far as JudgedBy says.
	Bytes    int64
	JudgedBy Judgement
	// Held names the layers that did not have to be transferred because the runtime had them.
	Held []string
}

// HeldError says that an image cannot be made fresh, and so a pull of it would prove nothing.
// Nothing was removed.
type HeldError struct {
	Image string
	// By is what holds it.
	By string
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("removing image %q before the pull: it is held by %s, and only a fresh pull proves a route: "+
		"name a canary image that nothing else uses", e.Image, e.By)
}

// quoted joins names for a person.
func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}
