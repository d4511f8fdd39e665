package decide

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

func TestC41_Cap(t *testing.T) {
	for _, tt := range []struct {
		given intstr.IntOrString
		nodes int
		want  int
		bad   bool
	}{
		{intstr.FromString("10%"), 4, 1, false},
		{intstr.FromString("10%"), 29, 2, false},
		{intstr.FromString("100%"), 7, 7, false},
		{intstr.FromInt32(3), 7, 3, false},
		{intstr.FromInt32(0), 7, 0, true},
		{intstr.FromString("150%"), 7, 0, true},
		{intstr.FromString("0%"), 7, 0, true},
		{intstr.FromString("many"), 7, 0, true},
	} {
		got, err := Cap(&tt.given, tt.nodes)
		if got != tt.want || (err != nil) != tt.bad {
			t.Errorf("Cap(%s, %d) = %d, %v", tt.given.String(), tt.nodes, got, err)
		}
	}
	if got, err := Cap(nil, 50); got != 1 || err != nil {
		t.Errorf("Cap(nil) = %d, %v", got, err)
	}
}

func TestC43_Windows(t *testing.T) {
	weekend := []v1alpha1.Window{{
		Days: []v1alpha1.Day{v1alpha1.Saturday, v1alpha1.Sunday}, Start: "22:00",
		Duration: metav1.Duration{Duration: 4 * time.Hour}, TimeZone: "Europe/Berlin",
	}}
	night := []v1alpha1.Window{{Start: "02:30", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "Europe/Berlin"}}
	for _, tt := range []struct {
		name, now, closes string
		windows           []v1alpha1.Window
	}{
		{"none are always open", "2026-03-02T08:00:00Z", "0001-01-01T00:00:00Z", nil},
		{"before it opens", "2026-03-07T20:59:59Z", "", weekend},
		{"as it opens", "2026-03-07T21:00:00Z", "2026-03-08T01:00:00Z", weekend},
		{"past midnight", "2026-03-08T00:59:00Z", "2026-03-08T01:00:00Z", weekend},
		{"as it closes", "2026-03-08T01:00:00Z", "", weekend},
		{"on another day", "2026-03-04T21:30:00Z", "", weekend},
		{"in summer time", "2026-07-04T20:00:00Z", "2026-07-05T00:00:00Z", weekend},
		// On 2026-03-29 the clocks go from 02:00 to 03:00, so 02:30 is the moment of that.
		{"at a time that is skipped", "2026-03-29T01:10:00Z", "2026-03-29T02:00:00Z", night},
		// On 2026-10-25 they show 02:30 twice.
		{"at the first of two such times", "2026-10-25T00:40:00Z", "2026-10-25T01:30:00Z", night},
		{"not at the second of them", "2026-10-25T01:31:00Z", "", night},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, tt.now)
			if err != nil {
				t.Fatal(err)
			}
			closes, open, err := OpenUntil(tt.windows, now)
			if err != nil {
				t.Fatal(err)
			}
			if open != (tt.closes != "") {
				t.Fatalf("open is %t until %s", open, closes)
			}
			if open && closes.UTC().Format(time.RFC3339) != tt.closes {
				t.Errorf("it closes at %s, want %s", closes.UTC(), tt.closes)
			}
		})
	}
	_, _, err := OpenUntil([]v1alpha1.Window{{Start: "22:00", TimeZone: "Nowhere/Land"}}, time.Now())
	if err == nil {
		t.Error("an unknown time zone is taken")
	}
}

func TestC43_NoNodeStartsThatCannotFinish(t *testing.T) {
	c := newCluster(t, 1, 5)
	c.profile.Spec.Rollout.Windows = []v1alpha1.Window{{Start: "08:00", Duration: metav1.Duration{Duration: 2 * time.Minute}, TimeZone: "UTC"}}
	if c.quiet(6); len(c.approvals) != 0 {
		t.Errorf("%d nodes started in a window of 2 minutes, and one needs %s", len(c.approvals), NodeTime(c.profile.Spec, false))
	}
	c.profile.Spec.Rollout.Windows[0].Duration.Duration = time.Hour
	if c.quiet(6); len(c.approvals) == 0 {
		t.Error("no node started in a window of an hour")
	}
}
