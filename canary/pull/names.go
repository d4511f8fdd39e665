package pull

import (
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// otherNames returns the names under which found is known besides asked: removing the image would
// take them away too.
func otherNames(asked string, found *criapi.Image) []string {
	own, err := name.ParseReference(asked)
	if err != nil {
		return slices.Concat(found.GetRepoTags(), found.GetRepoDigests())
	}
	var others []string
	for _, tag := range found.GetRepoTags() {
		if ref, err := name.ParseReference(tag); err != nil || ref.Name() != own.Name() {
			others = append(others, tag)
		}
	}
	// A tag comes with its own repository's digest; another repository's is somebody else's name.
	for _, digest := range found.GetRepoDigests() {
		if ref, err := name.ParseReference(digest); err != nil || ref.Context().Name() != own.Context().Name() {
			others = append(others, digest)
		}
	}
	return others
}

// digestOf returns the manifest's digest where the runtime keeps it, else the image's identifier.
func digestOf(image *criapi.Image) string {
	for _, digest := range image.GetRepoDigests() {
		if _, d, ok := strings.Cut(digest, "@"); ok {
			return d
		}
	}
	return image.GetId()
}
