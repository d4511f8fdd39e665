package runtimes

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/proxyward/proxyward/internal/unitfile"
)

const certDirVariable = "SSL_CERT_DIR"

// renderCA returns the file of the trusted CA, or nil when there is none. It holds the
// certificates alone, encoded anew, in the order in which they were given.
func renderCA(in RenderInput) (*File, error) {
	dirs := ""
	for _, v := range in.Environment.Vars {
		if v.Name == certDirVariable {
			dirs = v.Value.Reveal()
		}
	}
	switch {
	case in.CA == nil && dirs == "":
		return nil, nil
	case in.CA == nil:
		return nil, errors.New("the environment names a trusted CA and none was given; give the CA's PEM bytes")
	}
	sum := sha256.Sum256(in.CA)
	digest := hex.EncodeToString(sum[:])
	if !strings.HasSuffix(dirs, CADir+"/"+digest) {
		return nil, fmt.Errorf("the CA given has the digest %s, and %s of the environment does not name it; give the CA that the revision was made with", digest, certDirVariable)
	}
	certificates, err := onlyCertificates(in.CA)
	if err != nil {
		return nil, err
	}
	content := append([]byte(headerLine+"\n"), certificates...)
	return &File{Path: CAPath(digest), Mode: CAMode, Content: content, Masked: content}, nil
}

// onlyCertificates takes the certificates out of PEM text. Text between them is left out; anything
// else is refused, and never quoted: it may be a private key.
func onlyCertificates(text []byte) ([]byte, error) {
	if !unitfile.ValidText(string(text)) || bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("it is not text; convert it to PEM (openssl x509 -inform der -in ca.der -out ca.crt)")
	}
	var out []byte
	found := 0
	for rest := text; ; found++ {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if strings.Contains(block.Type, "PRIVATE KEY") {
			return nil, fmt.Errorf("its block %d is a private key, which every local user could read in %s; remove the key, and replace it if anybody else has seen this file", found+1, CADir)
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("its block %d is of type %q; leave CERTIFICATE blocks alone in it", found+1, block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("reading its block %d as a certificate: %w; give certificates in PEM", found+1, err)
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	begins, ends := bytes.Count(text, []byte("-----BEGIN ")), bytes.Count(text, []byte("-----END "))
	switch {
	case begins != found || ends != found:
		return nil, fmt.Errorf("it has %d beginnings and %d ends of PEM blocks and %d whole blocks; repair or remove the broken ones", begins, ends, found)
	case found == 0:
		return nil, errors.New("it holds no certificate; give certificates in PEM (-----BEGIN CERTIFICATE-----)")
	}
	return out, nil
}
