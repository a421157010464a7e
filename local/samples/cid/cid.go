// Package cid computes and parses the two kinds of content identifiers that the entity API
// uses. Both are CIDv1 in base32 with SHA-256: of raw bytes ("bafkrei...") and of DAG-CBOR
// nodes ("bafyrei..."). Raw(b) is the identifier that every IPFS node computes for b in one
// block. Other versions, codecs, hashes and bases are not supported.
package cid

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"
)

// CID is the text of a content identifier, as in a manifest.
type CID string

// Digest is the SHA-256 digest of the content that a CID identifies.
type Digest = [sha256.Size]byte

const (
	codecRaw     = 0x55
	codecDagCBOR = 0x71

	version  = 1
	hashSHA2 = 0x12
)

// ErrInvalid is the error for a text that is not a supported CID.
var ErrInvalid = errors.New("not a CIDv1 in base32 of raw or dag-cbor bytes hashed with sha2-256")

// Multibase "b": RFC 4648 base32 in lower case without padding.
var alphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Raw returns the CID of a file with the content b, in one block.
func Raw(b []byte) CID { return FromDigest(sha256.Sum256(b)) }

// FromDigest returns the CID of a file whose SHA-256 digest is d.
func FromDigest(d Digest) CID { return encode(codecRaw, d) }

// DagCBOR returns the CID of the IPLD node whose DAG-CBOR encoding is b.
func DagCBOR(b []byte) CID { return encode(codecDagCBOR, sha256.Sum256(b)) }

func encode(codec byte, d Digest) CID {
	return CID("b" + alphabet.EncodeToString(append([]byte{version, codec, hashSHA2, sha256.Size}, d[:]...)))
}

// Parse parses a CID and returns it with its digest. It returns ErrInvalid for any other text.
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

// Bytes returns the binary form for an IPLD link. It returns nil for a CID that Parse rejects.
func (c CID) Bytes() []byte {
	if _, _, err := Parse(string(c)); err != nil {
		return nil
	}
	b, _ := alphabet.DecodeString(string(c[1:]))
	return b
}
