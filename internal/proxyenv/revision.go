package proxyenv

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/proxyward/proxyward/api/v1alpha1"
)

// maxProfilePart is how much of a profile's name fits into a revision's: 253 bytes less a dash and
// the hash.
const maxProfilePart = 253 - 1 - 2*revisionHashBytes

// revisionHashBytes of the SHA-256 are in a revision's name.
const revisionHashBytes = 8

// RevisionName returns the name of a revision: its profile's name and the beginning of the SHA-256
// of its spec. The same spec has the same name everywhere, and no secret goes into it.
func RevisionName(spec *v1alpha1.ProxyRevisionSpec) string {
	h := sha256.New()
	// Encoding cannot fail: the spec is made of strings, lists, durations and one map-free tree.
	_ = json.NewEncoder(h).Encode(spec)
	prefix := spec.Profile
	if len(prefix) > maxProfilePart {
		prefix = strings.TrimRight(prefix[:maxProfilePart], "-.")
	}
	return prefix + "-" + hex.EncodeToString(h.Sum(nil)[:revisionHashBytes])
}
