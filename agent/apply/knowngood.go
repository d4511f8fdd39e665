package apply

import (
	"fmt"
	"time"
)

// KnownGood is what was last proven on this host.
type KnownGood struct {
	Revision           string    `json:"revision"`
	PlanHash           string    `json:"planHash"`
	CredentialsVersion string    `json:"credentialsVersion,omitempty"`
	Attempt            string    `json:"attempt"`
	Proven             time.Time `json:"proven"`
	// Digests of the canary images that arrived, by image.
	Digests map[string]string `json:"digests,omitempty"`
}

// ReadKnownGood returns what was last proven, or nil when nothing was.
func ReadKnownGood(files Reader) (*KnownGood, error) {
	var k KnownGood
	found, err := readSealed(files, KnownGoodPath, &k)
	if err != nil || !found {
		return nil, err
	}
	return &k, nil
}

func writeKnownGood(files Writer, rec *Record, now time.Time) error {
	k := KnownGood{
		Revision: rec.Revision, PlanHash: rec.PlanHash, CredentialsVersion: rec.CredentialsVersion,
		Attempt: rec.Attempt, Proven: now.UTC(), Digests: rec.Digests,
	}
	if err := writeSealed(files, KnownGoodPath, k); err != nil {
		return fmt.Errorf("recording what was proven: %w", err)
	}
	return nil
}

func digests(proof *Proof) map[string]string {
	out := map[string]string{}
	for _, e := range proof.Evidence {
		if e.Digest != "" {
			out[e.Image] = e.Digest
		}
	}
	return out
}
