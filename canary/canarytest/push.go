package canarytest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push stores image in the registry under repository:tag and returns the name to pull it by.
func (r *Registry) Push(t testing.TB, repository string, image v1.Image) string {
	t.Helper()
	ref, err := name.ParseReference(r.Host + "/" + repository)
	if err != nil {
		t.Fatalf("naming an image: %v", err)
	}
	if err := remote.Write(ref, image, remote.WithTransport(direct{r.store})); err != nil {
		t.Fatalf("pushing %q: %v", ref, err)
	}
	return ref.String()
}

// direct serves requests by a handler, without a network.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		req.Body = io.NopCloser(bytes.NewReader(nil))
	}
	recorded := httptest.NewRecorder()
	d.handler.ServeHTTP(recorded, req)
	answer := recorded.Result()
	answer.Request = req
	return answer, nil
}
