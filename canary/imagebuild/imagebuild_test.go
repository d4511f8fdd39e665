package imagebuild_test

import (
	"testing"

	"github.com/proxyward/proxyward/canary/imagebuild"
)

func TestNewIsUniqueAndIncompressible(t *testing.T) {
	var digests []string
	for range 2 {
		image, err := imagebuild.New(0, "arm64")
		if err != nil {
			t.Fatal(err)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("layers: %v, %v", layers, err)
		}
		size, err := layers[0].Size()
		if err != nil || size < imagebuild.DefaultSize {
			t.Errorf("layer has %d bytes (%v), want at least %d", size, err, imagebuild.DefaultSize)
		}
		digest, err := layers[0].Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
	}
	if digests[0] == digests[1] {
		t.Error("two canary images share their layer")
	}
}
