package samples

import (
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

// hierarchy arranges units into a tree.
type hierarchy struct {
	units map[string]*archive.Unit
	// made has the units without a description of their own. They are described by the common
	// values of their units.
	made map[string]bool
	// filled has the holders that have already received the common values of their units.
	filled map[string]bool
}

func newHierarchy(found map[string]archive.Unit) *hierarchy {
	h := &hierarchy{
		units:  make(map[string]*archive.Unit, len(found)),
		made:   map[string]bool{},
		filled: map[string]bool{},
	}
	for id, u := range found {
		h.units[id] = &u
	}
	return h
}

// hang sets the parent of each finding aid to its nearest holder. It creates holders that have
// no finding aid.
func hang(found map[string]archive.Unit) []archive.Unit {
	units := sorted(found)
	unify(units)
	h := newHierarchy(nil)
	holders := map[string]bool{}
	for _, u := range units {
		h.units[u.ID] = &u
		for _, ref := range u.Above {
			holders[ref.ID] = true
		}
	}
	for _, u := range units {
		unit := h.units[u.ID]
		nearest := len(unit.Above) - 1
		if nearest < 0 {
			continue
		}
		ref := unit.Above[nearest]
		_, described := found[ref.ID]
		if described || ref.Level == archive.LevelFile || unit.Level == archive.LevelItem && !holders[u.ID] {
			unit.Parent = ref.ID
			h.holder(ref, unit.Above[:nearest], found)
		}
	}
	return h.list()
}

// unify gives a holder one ID if some units name it by an identifier and others only by its
// catalog number. It also removes a unit from its own Above.
func unify(units []archive.Unit) {
	named := map[string]string{}
	for _, u := range units {
		for _, ref := range u.Above {
			if ref.CatalogID != "" && !strings.HasPrefix(ref.ID, "naid-") && named[ref.CatalogID] == "" {
				named[ref.CatalogID] = ref.ID
			}
		}
	}
	for i := range units {
		for j, ref := range units[i].Above {
			if id := named[ref.CatalogID]; id != "" && strings.HasPrefix(ref.ID, "naid-") {
				units[i].Above[j].ID = id
			}
		}
		units[i].Above = slices.DeleteFunc(units[i].Above, func(ref archive.Ref) bool { return ref.ID == units[i].ID })
	}
}

// holder creates the unit that ref names, unless it exists. Its parent is the nearest holder
// with a description.
func (h *hierarchy) holder(ref archive.Ref, above []archive.Ref, found map[string]archive.Unit) {
	if _, there := h.units[ref.ID]; there {
		return
	}
	u := made(ref, above)
	for i := len(above) - 1; i >= 0 && u.Parent == ""; i-- {
		if _, described := found[above[i].ID]; described {
			u.Parent = above[i].ID
		}
	}
	h.units[ref.ID] = &u
	h.made[ref.ID] = true
}

// made returns a holder with the values that its units give for it.
func made(ref archive.Ref, above []archive.Ref) archive.Unit {
	u := archive.Unit{
		ID: ref.ID, Level: ref.Level, Title: ref.Title, CatalogID: ref.CatalogID, Above: slices.Clone(above),
	}
	if u.CatalogID != "" {
		u.URL = "https://catalog.archives.gov/id/" + u.CatalogID
	}
	return u
}

// stack sets the parents of conversations to tapes, of tapes to series, and of series to the
// collection, as the conversations name them.
func stack(found, records map[string]archive.Unit) []archive.Unit {
	h := newHierarchy(found)
	for _, u := range sorted(found) {
		unit := h.units[u.ID]
		for i, ref := range unit.Above {
			if record, ok := records[ref.ID]; ok && ref.Level == archive.LevelFile {
				ref.CatalogID = record.CatalogID
				unit.Above[i] = ref
			}
			if _, there := h.units[ref.ID]; there {
				continue
			}
			above := unit.Above[:i]
			holder, recorded := records[ref.ID]
			if recorded && ref.Level == archive.LevelFile {
				holder.Above = slices.Clone(above)
				if !borneOut(holder.AltTitle, above) {
					holder.AltTitle = ""
				}
			} else {
				holder = made(ref, above)
				h.made[ref.ID] = true
			}
			if i > 0 {
				holder.Parent = above[i-1].ID
			}
			h.units[ref.ID] = &holder
		}
	}
	return h.list()
}

// borneOut reports whether the title of a tape, such as "Camp David study table tape number
// 163", agrees with the series of its conversations.
func borneOut(title string, above []archive.Ref) bool {
	device, _, ok := strings.Cut(strings.ToLower(title), " tape number")
	return ok && len(above) > 0 && strings.Contains(strings.ToLower(above[len(above)-1].Title), device)
}

// list fills all holders and returns the units, each holder before its units.
func (h *hierarchy) list() []archive.Unit {
	all := make(map[string]archive.Unit, len(h.units))
	below := map[string][]string{}
	for id, u := range h.units {
		all[id] = *u
	}
	order := sorted(all)
	for _, u := range order {
		below[u.Parent] = append(below[u.Parent], u.ID)
	}
	for _, u := range order {
		h.fill(u.ID, below)
	}
	rank := map[archive.Level]int{archive.LevelCollection: 0, archive.LevelSeries: 1, archive.LevelFile: 2, archive.LevelItem: 3}
	list := make([]archive.Unit, 0, len(order))
	for _, u := range order {
		list = append(list, *h.units[u.ID])
	}
	place := func(u archive.Unit) int {
		if u.Component > 0 { // in the order of its finding aid, independent of its level
			return len(rank)
		}
		return rank[u.Level]
	}
	slices.SortStableFunc(list, func(a, b archive.Unit) int { return place(a) - place(b) })
	return list
}

// fill gives a holder the common values of its units, after it has filled the holders below.
func (h *hierarchy) fill(id string, below map[string][]string) {
	if h.filled[id] || len(below[id]) == 0 {
		return
	}
	h.filled[id] = true
	units := make([]*archive.Unit, 0, len(below[id]))
	for _, child := range below[id] {
		h.fill(child, below)
		units = append(units, h.units[child])
	}
	archive.Summarize(h.units[id], units, h.made[id])
}
