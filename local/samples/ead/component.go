package ead

import (
	"fmt"
	"io"
	"regexp"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

// componentName matches the elements of components: c, c01 to c12.
var componentName = regexp.MustCompile(`^c(0[1-9]|1[0-2])?$`)

// ParseAll is Parse, and returns the components of the finding aid after it, each after the
// one that contains it. A component is a unit if it has an attribute id, which no earlier one
// has. Its ID is that of the finding aid, "#" and the attribute, and it is contained in the
// nearest unit above. A component without an id is a part of the unit that contains it.
func ParseAll(r io.Reader, fallback string) ([]archive.Unit, error) {
	root, err := readTree(r)
	if err != nil {
		return nil, fmt.Errorf("cannot read the finding aid: %w", err)
	}
	if root.name != "ead" {
		return nil, fmt.Errorf("%w: its root element is <%s>", ErrOther, root.name)
	}
	desc := root.child("archdesc")
	c := components{ids: map[string]bool{}}
	cut := c.cut(desc)
	top := (&document{header: root.child("eadheader"), desc: desc, did: desc.child("did")}).unit(fallback)
	c.units = append(c.units, top)
	c.add(cut, top)
	return c.units, nil
}

// components collects the components of a finding aid.
type components struct {
	ids   map[string]bool
	units []archive.Unit
}

// cut removes the components that are units from the elements below n, and returns those
// that no other of them contains.
func (c *components) cut(n *node) (cut []*node) {
	if n == nil {
		return nil
	}
	kept := n.children[:0]
	for _, child := range n.children {
		if id := child.attr("id"); componentName.MatchString(child.name) && id != "" && !c.ids[id] {
			c.ids[id] = true
			cut = append(cut, child)
			continue
		}
		cut = append(cut, c.cut(child)...)
		kept = append(kept, child)
	}
	n.children = kept
	return cut
}

// add appends the units of components that a unit contains.
func (c *components) add(cut []*node, holder archive.Unit) {
	for _, n := range cut {
		below := c.cut(n)
		u := c.unit(n, holder)
		c.units = append(c.units, u)
		c.add(below, u)
	}
}

// unit returns the unit of a component. What is said once for the finding aid applies to
// its components.
func (c *components) unit(n *node, holder archive.Unit) archive.Unit {
	top := c.units[0]
	d := &document{desc: n, did: n.child("did")}
	u := d.unit(top.ID + "#" + n.attr("id"))
	if u.Title == u.ID {
		u.Title = firstOf(d.did.child("unittitle").words(), d.did.child("unitdate").words(), u.CallNumber, u.ID)
	}
	for field, inherited := range map[*string]string{
		&u.Institution: top.Institution, &u.Describer: top.Describer, &u.Language: top.Language, &u.Rights: top.Rights,
	} {
		*field = firstOf(*field, inherited)
	}
	u.Above = append(append([]archive.Ref{}, holder.Above...), archive.Ref{Level: holder.Level, ID: holder.ID, Title: holder.Title})
	u.FindingAid, u.Component = top.ID, len(c.units)
	return u
}
