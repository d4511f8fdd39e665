package drift

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"

	"github.com/proxyward/proxyward/runtimes"
)

// planHash is the digest of a plan: the desired files with their secrets masked, the credentials
// version that stands for those secrets, and the ordered actions without their reasons. Every
// field is preceded by its length, so that no two plans run together.
func planHash(desired []Desired, credentialsVersion string, actions []Action) string {
	d := digest{sha256.New()}
	d.add("proxyward plan v1")
	d.add(credentialsVersion)
	for _, unit := range desired {
		d.add("unit", string(unit.Target), unit.Unit, strconv.FormatBool(unit.Absent))
		for _, file := range unit.Files {
			d.add("file", file.Path, file.Mode.String(), string(shown(file)))
		}
	}
	for _, action := range actions {
		d.add("action", string(action.Kind), action.Unit, action.File.Path)
	}
	return hex.EncodeToString(d.Sum(nil))
}

type digest struct{ hash.Hash }

func (d digest) add(fields ...string) {
	for _, field := range fields {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		d.Write(length[:]) // a hash never fails to be written
		d.Write([]byte(field))
	}
}

// shown is what of a file may be seen. A file that others may not read and that has no masked form
// shows nothing.
func shown(file runtimes.File) []byte {
	if file.Masked == nil && file.Mode.Perm()&0o077 != 0 {
		return file.Content
	}
	return file.Masked
}
