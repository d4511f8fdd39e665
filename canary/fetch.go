package canary

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// maxManifest is what registries accept as a manifest at most (4 MiB).
	maxManifest = 4 << 20
	// wholeBlob is up to what size a layer is read whole and its digest checked (8 MiB); of a
	// larger one partBlob bytes show that it comes.
	wholeBlob = 8 << 20
	partBlob  = 64 << 10
)

// get asks for what lies at path below the registry's front door.
func (w *walker) get(ctx context.Context, client *http.Client, path string, accept ...types.MediaType) (*http.Response, *Failure) {
	target := fmt.Sprintf("%s://%s/v2/%s/%s", w.base.Scheme, w.base.Host, w.ref.Context().RepositoryStr(), path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, newFailure(FailBadImage, w.base.Host, err.Error())
	}
	for _, media := range accept {
		req.Header.Add("Accept", string(media))
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, w.failed(err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, w.failed(fmt.Errorf("getting %q: answered %d", path, answer.StatusCode))
	}
	return answer, nil
}

// manifest reads the image's manifest, of an index the one for this platform.
func (w *walker) manifest(ctx context.Context, client *http.Client) (*v1.Manifest, *Failure) {
	raw, failure := w.document(ctx, client, w.ref.Identifier())
	if failure != nil {
		return nil, failure
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, w.failed(fmt.Errorf("parsing the manifest: %w", err))
	}
	if len(index.Manifests) > 0 {
		child, err := choose(index.Manifests)
		if err != nil {
			return nil, w.failed(err)
		}
		if raw, failure = w.document(ctx, client, child.String()); failure != nil {
			return nil, failure
		}
	}
	var manifest v1.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return nil, w.failed(fmt.Errorf("parsing the manifest: %w", err))
	}
	for _, layer := range manifest.Layers {
		w.size += layer.Size
	}
	return &manifest, nil
}

// choose returns the manifest for this platform.
func choose(manifests []v1.Descriptor) (v1.Hash, error) {
	here := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	for _, m := range manifests {
		if m.Platform != nil && m.Platform.Satisfies(here) {
			return m.Digest, nil
		}
	}
	return v1.Hash{}, fmt.Errorf("looking for %s in the image's index: it has no such manifest", here)
}

func (w *walker) document(ctx context.Context, client *http.Client, identifier string) ([]byte, *Failure) {
	answer, failure := w.get(ctx, client, "manifests/"+identifier,
		types.OCIManifestSchema1, types.DockerManifestSchema2, types.OCIImageIndex, types.DockerManifestList)
	if failure != nil {
		return nil, failure
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxManifest))
	if err != nil {
		return nil, w.failed(fmt.Errorf("reading the manifest: %w", err))
	}
	w.digest = v1.Hash{Algorithm: "sha256", Hex: sha256Hex(raw)}.String()
	return raw, nil
}

// blob reads the largest layer, whole when it is small.
func (w *walker) blob(ctx context.Context, client *http.Client, manifest *v1.Manifest) *Failure {
	if len(manifest.Layers) == 0 {
		return w.failed(fmt.Errorf("looking for a layer to read: the image has none"))
	}
	largest := manifest.Layers[0]
	for _, layer := range manifest.Layers {
		if layer.Size > largest.Size {
			largest = layer
		}
	}
	answer, failure := w.get(ctx, client, "blobs/"+largest.Digest.String())
	if failure != nil {
		return failure
	}
	defer answer.Body.Close()
	want := largest.Size
	if want > wholeBlob {
		want = partBlob
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, want))
	if err != nil {
		return w.failed(fmt.Errorf("reading layer %q: %w", largest.Digest, err))
	}
	if int64(len(raw)) == want && (want < largest.Size || sha256Hex(raw) == largest.Digest.Hex) {
		return nil
	}
	mismatch := newFailure(FailBlobMismatch, answer.Request.URL.Host,
		fmt.Sprintf("layer %s has %d bytes; what arrived, %d bytes of them, is something else", largest.Digest, largest.Size, len(raw)))
	w.recorder.fail(mismatch)
	return mismatch
}
