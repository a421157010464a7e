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

// Limits of a document. Known finding aids have 32 KB and a depth of 8.
const (
	sizeMost  = 64 << 20
	depthMost = 200
)

// node is an element, or text if it has no name. Names have no prefix, because finding aids use
// the EAD namespace with any prefix or none.
type node struct {
	name     string
	attrs    map[string]string
	text     string
	children []*node
}

// readTree parses a whole document. It does not resolve external entities and does not read a
// DTD.
func readTree(r io.Reader) (*node, error) {
	raw, err := io.ReadAll(io.LimitReader(r, sizeMost+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > sizeMost {
		return nil, fmt.Errorf("larger than %d MiB", sizeMost>>20)
	}
	utf16 := bytes.HasPrefix(raw, []byte{0xff, 0xfe}) || bytes.HasPrefix(raw, []byte{0xfe, 0xff})
	if utf16 {
		if raw, err = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Bytes(raw); err != nil {
			return nil, err
		}
	}
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\ufeff"))))
	d.Entity = xml.HTMLEntity // entities that a DTD would declare, such as &nbsp;
	d.CharsetReader = func(name string, in io.Reader) (io.Reader, error) {
		if utf16 && strings.HasPrefix(strings.ToLower(name), "utf-16") {
			return in, nil
		}
		e, err := htmlindex.Get(name)
		if err != nil {
			return nil, fmt.Errorf("unknown encoding %q", name)
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
	return nil, errors.New("no element")
}

// blocks has the elements that separate words. The texts before and after another element, such
// as <emph>, may be parts of one word.
var blocks = map[string]bool{
	"p": true, "lb": true, "head": true, "item": true, "list": true, "unittitle": true, "unitid": true,
	"unitdate": true, "addressline": true, "entry": true, "row": true, "cell": true,
	"persname": true, "corpname": true, "famname": true, "geogname": true, "subject": true, "date": true,
}

// words returns the clean text of n and its descendants, without the elements named in skip. n
// may be nil.
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

// attr returns the value of an attribute. n may be nil.
func (n *node) attr(name string) string {
	if n == nil {
		return ""
	}
	return n.attrs[name]
}

// all returns the elements with one of the names at any depth below n, in document order.
// Without names it returns every element.
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

// first returns the first element below n with one of the names, or nil.
func (n *node) first(names ...string) *node {
	for _, found := range n.all(names...) {
		return found
	}
	return nil
}

// elements returns the child elements of n with one of the names. Without names it returns
// every child element.
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

// child returns the first child element of n with the name, or nil.
func (n *node) child(name string) *node {
	for _, found := range n.elements(name) {
		return found
	}
	return nil
}

// withID returns the first element below n with the name and id, or nil.
func (n *node) withID(name, id string) *node {
	for _, found := range n.all(name) {
		if found.attrs["id"] == id {
			return found
		}
	}
	return nil
}
