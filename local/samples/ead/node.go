package ead

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

// Bounds of a document; the finding aids that are known have 32 KB and a depth of 8.
const (
	sizeMost  = 64 << 20
	depthMost = 200
)

// node is an element, or text where it has no name. Names are local ones:
// finding aids come with the EAD namespace under any prefix, and without it.
type node struct {
	name     string
	attrs    map[string]string
	text     string
	children []*node
}

// readTree reads a whole document. It resolves no external entity and reads no DTD.
func readTree(r io.Reader) (*node, error) {
	raw, err := io.ReadAll(io.LimitReader(r, sizeMost+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > sizeMost {
		return nil, fmt.Errorf("it is larger than %d MiB", sizeMost>>20)
	}
	utf16 := bytes.HasPrefix(raw, []byte{0xff, 0xfe}) || bytes.HasPrefix(raw, []byte{0xfe, 0xff})
	if utf16 {
		if raw, err = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Bytes(raw); err != nil {
			return nil, err
		}
	}
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\ufeff"))))
	d.Entity = xml.HTMLEntity // &nbsp; and its like, which a DTD would declare
	d.CharsetReader = func(name string, in io.Reader) (io.Reader, error) {
		if utf16 && strings.HasPrefix(strings.ToLower(name), "utf-16") {
			return in, nil
		}
		e, err := htmlindex.Get(name)
		if err != nil {
			return nil, fmt.Errorf("its encoding %q is unknown", name)
		}
		return e.NewDecoder().Reader(in), nil
	}
	return build(d)
}

func build(d *xml.Decoder) (*node, error) {
	top := &node{}
	open := []*node{top}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		at := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			if len(open) > depthMost {
				return nil, fmt.Errorf("elements are nested more than %d deep", depthMost)
			}
			n := &node{name: token.Name.Local, attrs: make(map[string]string, len(token.Attr))}
			for _, a := range token.Attr {
				n.attrs[a.Name.Local] = strings.TrimSpace(a.Value)
			}
			at.children = append(at.children, n)
			open = append(open, n)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			at.children = append(at.children, &node{text: string(token)})
		}
	}
	for _, n := range top.children {
		if n.name != "" {
			return n, nil
		}
	}
	return nil, errors.New("it holds no element")
}

// blocks are the elements that end a word; text on both sides of any other,
// <emph> say, may be one word.
var blocks = map[string]bool{
	"p": true, "lb": true, "head": true, "item": true, "list": true, "unittitle": true, "unitid": true,
	"unitdate": true, "addressline": true, "entry": true, "row": true, "cell": true,
	"persname": true, "corpname": true, "famname": true, "geogname": true, "subject": true, "date": true,
}

// words is the clean text of n and all below it, except where skip says so.
// It is safe on nil.
func (n *node) words(skip ...string) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	n.collect(&b, skip)
	return archive.Clean(b.String())
}

func (n *node) collect(b *strings.Builder, skip []string) {
	b.WriteString(n.text)
	for _, c := range n.children {
		for _, s := range skip {
			if c.name == s {
				c = &node{text: " "}
			}
		}
		if blocks[c.name] {
			b.WriteByte(' ')
		}
		c.collect(b, skip)
		if blocks[c.name] {
			b.WriteByte(' ')
		}
	}
}

// attr is safe on nil.
func (n *node) attr(name string) string {
	if n == nil {
		return ""
	}
	return n.attrs[name]
}

// all gives the elements of these names at any depth below n, in the order of
// the document; no name is every element.
func (n *node) all(names ...string) []*node {
	var found []*node
	if n == nil {
		return nil
	}
	for _, c := range n.children {
		if c.name == "" {
			continue
		}
		match := len(names) == 0
		for _, name := range names {
			match = match || c.name == name
		}
		if match {
			found = append(found, c)
		}
		found = append(found, c.all(names...)...)
	}
	return found
}

// first gives the first element of these names below n, or nil.
func (n *node) first(names ...string) *node {
	for _, found := range n.all(names...) {
		return found
	}
	return nil
}

// elements are n's own children of these names; no name is every element.
func (n *node) elements(names ...string) []*node {
	var found []*node
	if n == nil {
		return nil
	}
	for _, c := range n.children {
		match := c.name != "" && len(names) == 0
		for _, name := range names {
			match = match || c.name == name
		}
		if match {
			found = append(found, c)
		}
	}
	return found
}

// child is the first of n's own children of this name, or nil.
func (n *node) child(name string) *node {
	for _, found := range n.elements(name) {
		return found
	}
	return nil
}

// withID gives the first element of this name below n whose id it is, or nil.
func (n *node) withID(name, id string) *node {
	for _, found := range n.all(name) {
		if found.attrs["id"] == id {
			return found
		}
	}
	return nil
}
