// Package cid computes and reads content identifiers of the two kinds that the
// entity API uses: CIDv1, base32, sha2-256, of raw bytes ("bafkrei...") and of
// DAG-CBOR nodes ("bafyrei..."). It promises true identifiers: Raw(b) is what
// any IPFS node gives for b in one block. It refuses every other version,
// codec, hash and base.
package cid

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"
)

// CID is the text of a content identifier, as it stands in a manifest.
type CID string

// Digest is the sha2-256 of what a CID names.
type Digest = [sha256.Size]byte

const (
	codecRaw     = 0x55
	codecDagCBOR = 0x71

	version  = 1
	hashSHA2 = 0x12
)

// ErrInvalid is for a text that is not a CID of the kinds that this package knows.
var ErrInvalid = errors.New("not a CIDv1 in base32 of raw or dag-cbor bytes hashed with sha2-256")

// Multibase "b": RFC 4648 base32, lower case, no padding.
var alphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Raw is the CID of b as a file in one block.
func Raw(b []byte) CID { return FromDigest(sha256.Sum256(b)) }

// FromDigest is the CID of a file whose sha2-256 is d.
func FromDigest(d Digest) CID { return encode(codecRaw, d) }

// DagCBOR is the CID of b as an IPLD node in DAG-CBOR.
func DagCBOR(b []byte) CID { return encode(codecDagCBOR, sha256.Sum256(b)) }

func encode(codec byte, d Digest) CID {
	return CID("b" + alphabet.EncodeToString(append([]byte{version, codec, hashSHA2, sha256.Size}, d[:]...)))
}

// Parse reads a CID and gives its digest. Its error is ErrInvalid.
func Parse(text string) (CID, Digest, error) {
	encoded, ok := strings.CutPrefix(text, "b")
	if !ok {
		return "", Digest{}, ErrInvalid
	}
	b, err := alphabet.DecodeString(encoded)
	if err != nil || len(b) != 4+sha256.Size || b[0] != version || (b[1] != codecRaw && b[1] != codecDagCBOR) ||
		b[2] != hashSHA2 || b[3] != sha256.Size {
		return "", Digest{}, ErrInvalid
	}
	c := encode(b[1], Digest(b[4:]))
	if string(c) != text { // bits that base32 does not use must be zero
		return "", Digest{}, ErrInvalid
	}
	return c, Digest(b[4:]), nil
}

// Bytes is the binary form, as an IPLD link holds it. It is nil for a CID that
// Parse refuses.
func (c CID) Bytes() []byte {
	if _, _, err := Parse(string(c)); err != nil {
		return nil
	}
	b, _ := alphabet.DecodeString(string(c[1:]))
	return b
}
