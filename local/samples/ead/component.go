package ead

import (
	"fmt"
	"io"
	"regexp"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

// componentName matches the names of component elements: c and c01 to c12.
var componentName = regexp.MustCompile(`^c(0[1-9]|1[0-2])?$`)

// ParseAll is Parse, but after the unit of the finding aid it also returns the units of
// components, each after the unit that contains it. A component is a unit if it has an
// attribute id that no earlier component has. Its ID is the ID of the finding aid, "#" and the
// attribute. It is contained in the nearest unit above it. A component without an id is a part
// of the unit that contains it.
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

// components collects the units of a finding aid and its components.
type components struct {
	ids   map[string]bool
	units []archive.Unit
}

// cut removes the components that are units from the elements below n. It returns those that
// are not inside another one.
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

// add appends the units of components that the holder contains, and of the components inside
// them.
func (c *components) add(cut []*node, holder archive.Unit) {
	for _, n := range cut {
		below := c.cut(n)
		u := c.unit(n, holder)
		c.units = append(c.units, u)
		c.add(below, u)
	}
}

// unit returns the unit of a component. Values that are given once for the whole finding aid
// apply to its components too.
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
