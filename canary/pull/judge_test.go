package pull

import (
	"slices"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before, after := began.Add(-time.Hour), began.Add(time.Second)
	for _, tt := range []struct {
		name   string
		layers []layer
		held   inventory
		bytes  int64
		by     Judgement
		shared []string
	}{
		{"new blobs", []layer{{"a", 100, true, after}, {"b", 50, true, after}}, inventory{}, 150, ByContentStore, nil},
		{"C45 one blob was there", []layer{{"a", 100, true, after}, {"b", 50, true, after}}, inventory{blobs: map[string]int64{"a": 100}}, 50, ByContentStore, []string{"a"}},
		{"discarded after unpacking", []layer{{"a", 100, false, after}}, inventory{}, 100, ByUnpacked, nil},
		{"one discarded, one stored", []layer{{"a", 100, false, after}, {"b", 50, true, after}}, inventory{}, 150, ByUnpacked, nil},
		{"unpacked in the moment of the pull", []layer{{"a", 100, false, began}}, inventory{}, 100, ByUnpacked, nil},
		{"C45 the snapshot is older than the pull", []layer{{"a", 100, false, before}}, inventory{}, 0, ByContentStore, []string{"a"}},
		{"C45 a discarded blob that another namespace had", []layer{{"a", 100, false, after}}, inventory{blobs: map[string]int64{"a": 100}}, 0, ByContentStore, []string{"a"}},
		{"a download that was resumed", []layer{{"a", 100, true, after}}, inventory{partial: map[string]int64{"a": 60}}, 40, ByContentStore, nil},
		{"neither blob nor snapshot", []layer{{"a", 100, false, time.Time{}}}, inventory{}, 0, "", nil},
		{"no layers", nil, inventory{}, 0, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := judge(Arrival{Began: began}, pulledImage{digest: "m", layers: tt.layers}, &tt.held)
			if got.Bytes != tt.bytes || got.JudgedBy != tt.by || !slices.Equal(got.Held, tt.shared) || got.Digest != "m" {
				t.Errorf("judged %d bytes by %q, held %v; want %d by %q, held %v", got.Bytes, got.JudgedBy, got.Held, tt.bytes, tt.by, tt.shared)
			}
		})
	}
}

func TestCredentialsAreBoundToTheirRegistry(t *testing.T) {
	for image, want := range map[string]string{
		"registry.corp.example:5000/a/b:1":                                                    "https://registry.corp.example:5000",
		"ghcr.io/a/b@sha256:0123456789012345678901234567890123456789012345678901234567890123": "https://ghcr.io",
		"busybox": "https://registry-1.docker.io",
	} {
		if got, err := (Image{Name: image}).server(); err != nil || got != want {
			t.Errorf("server of %q is %q, %v; want %q", image, got, err, want)
		}
	}
	if _, err := (Image{Name: "Not An Image"}).server(); err == nil {
		t.Error("what is no image has a server")
	}
}
