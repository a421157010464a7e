package entityapi

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/samples/cid"
)

// schema is the schema of stored manifests in version 0 of the API.
const schema = "arke/manifest@v1"

// createdAt is the time of every first version, which is the time in the sample's root PI. Each
// later version is one second later.
var createdAt = time.Date(2025, time.November, 13, 5, 34, 54, 719_000_000, time.UTC)

// manifest is a version of an entity, in the form of the API's response.
type manifest struct {
	PI         string             `json:"pi"`
	Ver        int                `json:"ver"`
	TS         string             `json:"ts"`
	CID        cid.CID            `json:"manifest_cid"`
	Prev       *cid.CID           `json:"prev_cid"`
	Components map[string]cid.CID `json:"components"`
	Children   []string           `json:"children_pi,omitempty"`
	Parent     string             `json:"parent_pi,omitempty"`
	Note       string             `json:"note,omitempty"`

	node []byte // the stored form, in DAG-CBOR
}

// version computes version v of e, which must be between 1 and e.Versions.
func version(e Entity, v int) manifest {
	m := manifest{
		PI:         e.PI,
		Ver:        v,
		TS:         createdAt.Add(time.Duration(v-1) * time.Second).Format("2006-01-02T15:04:05.000Z"),
		Components: make(map[string]cid.CID, len(e.Components)),
		Parent:     e.Parent,
		Note:       e.Note,
	}
	for _, c := range e.Components {
		m.Components[c.Name] = c.CID
	}
	if v == e.Versions {
		m.Children = e.Children
	}
	if v > 1 {
		prev := version(e, v-1).CID
		m.Prev = &prev
	}
	m.node = m.encode()
	m.CID = cid.DagCBOR(m.node)
	return m
}

// tip returns the newest version.
func tip(e Entity) manifest { return version(e, e.Versions) }

// encode returns the stored form: deterministic DAG-CBOR with links as tag 42.
func (m manifest) encode() []byte {
	fields := map[string]func(*bytes.Buffer){
		"schema": text(schema),
		"pi":     text(m.PI),
		"ver":    func(b *bytes.Buffer) { head(b, 0, uint64(m.Ver)) }, //nolint:gosec // versions count from 1
		"ts":     text(m.TS),
		"prev":   func(b *bytes.Buffer) { b.WriteByte(0xf6) }, // null
	}
	if m.Prev != nil {
		fields["prev"] = link(*m.Prev)
	}
	components := make(map[string]func(*bytes.Buffer), len(m.Components))
	for name, c := range m.Components {
		components[name] = link(c)
	}
	fields["components"] = func(b *bytes.Buffer) { mapping(b, components) }
	if len(m.Children) > 0 {
		fields["children_pi"] = func(b *bytes.Buffer) {
			head(b, 4, uint64(len(m.Children)))
			for _, pi := range m.Children {
				text(pi)(b)
			}
		}
	}
	if m.Parent != "" {
		fields["parent_pi"] = text(m.Parent)
	}
	if m.Note != "" {
		fields["note"] = text(m.Note)
	}
	var b bytes.Buffer
	mapping(&b, fields)
	return b.Bytes()
}

// head writes the first bytes of a CBOR item: major type and argument, in the
// shortest form (RFC 8949 §4.2.1).
func head(b *bytes.Buffer, major byte, n uint64) {
	major <<= 5
	switch {
	case n < 24:
		b.WriteByte(major | byte(n))
	case n < 1<<8:
		b.Write([]byte{major | 24, byte(n)})
	case n < 1<<16:
		b.Write(binary.BigEndian.AppendUint16([]byte{major | 25}, uint16(n)))
	case n < 1<<32:
		b.Write(binary.BigEndian.AppendUint32([]byte{major | 26}, uint32(n)))
	default:
		b.Write(binary.BigEndian.AppendUint64([]byte{major | 27}, n))
	}
}

func text(s string) func(*bytes.Buffer) {
	return func(b *bytes.Buffer) {
		head(b, 3, uint64(len(s)))
		b.WriteString(s)
	}
}

// link encodes tag 42 with the CID's bytes after a zero (the identity
// multibase).
func link(c cid.CID) func(*bytes.Buffer) {
	return func(b *bytes.Buffer) {
		raw := c.Bytes()
		head(b, 6, 42)
		head(b, 2, uint64(len(raw)+1))
		b.WriteByte(0)
		b.Write(raw)
	}
}

// mapping writes a CBOR map with its keys in the order of DAG-CBOR: by length, then by bytes.
func mapping(b *bytes.Buffer, fields map[string]func(*bytes.Buffer)) {
	keys := make([]string, 0, len(fields))
	for k := range fields {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y string) int {
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	})
	head(b, 5, uint64(len(keys)))
	for _, k := range keys {
		text(k)(b)
		fields[k](b)
	}
}
