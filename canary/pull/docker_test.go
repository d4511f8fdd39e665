package pull

import (
	"slices"
	"testing"

	"github.com/moby/moby/api/types/jsonstream"
)

func TestDockerProgress(t *testing.T) {
	message := func(id, status string, total int64) jsonstream.Message {
		m := jsonstream.Message{ID: id, Status: status}
		if total > 0 {
			m.Progress = &jsonstream.Progress{Total: total}
		}
		return m
	}
	for _, tt := range []struct {
		name     string
		messages []jsonstream.Message
		want     Arrival
	}{
		{"downloaded", []jsonstream.Message{
			message("1", "Pulling from proxyward/canary", 0), message("aa", "Pulling fs layer", 0),
			message("aa", "Downloading", 1000), message("aa", layerDownloaded, 0),
			message("aa", "Extracting", 1000), message("aa", layerPulled, 0), message("", "Status: Downloaded newer image", 0),
		}, Arrival{Size: 1000, Bytes: 1000, JudgedBy: ByProgress}},
		{"C45 one layer was there", []jsonstream.Message{
			message("bb", layerHeld, 0), message("aa", "Downloading", 1000), message("aa", layerPulled, 0),
		}, Arrival{Size: 1000, Bytes: 1000, JudgedBy: ByProgress, Held: []string{"bb"}}},
		{"C45 all layers were there", []jsonstream.Message{message("bb", layerHeld, 0)},
			Arrival{Size: 77, Unpacked: true, JudgedBy: ByProgress, Held: []string{"bb"}}},
		{"no size told", []jsonstream.Message{message("aa", layerPulled, 0)}, Arrival{Size: 77, Unpacked: true}},
		{"C45 up to date", []jsonstream.Message{message("", "Status: Image is up to date", 0)}, Arrival{Size: 77, Unpacked: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			layers := progress{}
			for _, m := range tt.messages {
				layers.add(m)
			}
			got := layers.judge(Arrival{}, 77)
			if got.Size != tt.want.Size || got.Unpacked != tt.want.Unpacked || got.Bytes != tt.want.Bytes ||
				got.JudgedBy != tt.want.JudgedBy || !slices.Equal(got.Held, tt.want.Held) {
				t.Errorf("judged %+v, want %+v", got, tt.want)
			}
		})
	}
}
