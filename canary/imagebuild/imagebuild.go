// Package imagebuild makes images that serve as canaries. It stands apart from the proofs so that what
// lives on nodes does not link what builds images.
package imagebuild

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// DefaultSize is the size of a canary image's layer for which none was given: 1 MiB, enough
// to stand out from what else a daemon receives.
const DefaultSize = 1 << 20

// New returns an image that serves as a canary and nothing else: one layer with size random
// bytes (DefaultSize when 0), which do not compress and which no other image shares, for
// linux on the given architecture. There is nothing in it to run.
func New(size int64, architecture string) (v1.Image, error) {
	if size == 0 {
		size = DefaultSize
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "canary", Mode: 0o444, Size: size}); err != nil {
		return nil, fmt.Errorf("making a canary layer: %w", err)
	}
	if _, err := io.CopyN(w, rand.Reader, size); err != nil {
		return nil, fmt.Errorf("making a canary layer of %d bytes: %w", size, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("making a canary layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("making a canary layer: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	made, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, fmt.Errorf("making a canary image: %w", err)
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the canary image's configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	made, err = mutate.ConfigFile(made, config)
	if err != nil {
		return nil, fmt.Errorf("writing the canary image's configuration: %w", err)
	}
	return made, nil
}
