//go:build linux

package integration

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/proxyward/proxyward/api/v1alpha1"
	"github.com/proxyward/proxyward/canary/canarytest"
	"github.com/proxyward/proxyward/integration/lab"
	"github.com/proxyward/proxyward/runtimes"
)

// dockerLab is a site whose daemon is Docker's.
type dockerLab struct{ *canaryLab }

func TestCanaryThroughRealDocker(t *testing.T) {
	for _, generation := range lab.GenerationsUnderTest(t) {
		t.Run(string(generation), func(t *testing.T) {
			c := startCanaryLab(t, lab.NodeSpec{Generation: generation, Docker: true})
			c.runtime = runtimes.Runtime{
				Target: v1alpha1.TargetDocker, Unit: "docker.service", API: runtimes.PullByDocker,
				Socket: filepath.Join(c.node.Live(), lab.DockerSocket),
			}
			canarytest.Conform(t, dockerLab{c})
			t.Run("a registry that asks for a login", c.login)
		})
	}
}

func (d dockerLab) ask(ctx context.Context, t *testing.T, method, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := d.node.UnixClient(lab.DockerSocket).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

func (d dockerLab) Keep(t *testing.T, socket, image string) {
	t.Helper()
	if status := d.ask(t.Context(), t, http.MethodPost, "/images/create?fromImage="+url.QueryEscape(image)); status != http.StatusOK {
		t.Fatalf("pulling %q: answered %d", image, status)
	}
	if !d.Has(t, socket, image) {
		t.Fatalf("pulling %q: it did not arrive", image)
	}
}

func (d dockerLab) Has(t *testing.T, _, image string) bool {
	t.Helper()
	return d.ask(t.Context(), t, http.MethodGet, "/images/"+image+"/json") == http.StatusOK
}

func (d dockerLab) Drop(t *testing.T, _, image string) {
	t.Helper()
	if status := d.ask(context.Background(), t, http.MethodDelete, "/images/"+image); status != http.StatusOK {
		t.Fatalf("removing %q: answered %d", image, status)
	}
}
