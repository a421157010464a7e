package entityapi

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/samples/cid"
)

// RootPI is the PI of the root entity, which every collection has besides its own entities.
const RootPI = "00000000000000000000000000"

const (
	listDefault     = 100 // default number of entities in a response
	versionsDefault = 50
	limitMost       = 1000
)

var piForm = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

// api is the state of a handler: the source, the index of its bytes, the root entity, and the
// counts of faults.
type api struct {
	source Source
	index  *index
	origin Entity
	faults *faultCounts
}

// Handler serves source. It is safe for concurrent use. Each handler counts the source's faults
// separately. clock is the clock of the delays.
func Handler(source Source, clock Clock) http.Handler {
	a := &api{
		source: source,
		index:  &index{source: source, latest: map[uint64]uint32{}},
		origin: originOf(source),
		faults: &faultCounts{clock: clock, asked: map[string]int{}},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", a.health)
	mux.HandleFunc("GET /arke", func(w http.ResponseWriter, _ *http.Request) { answerEntity(w, a.origin) })
	mux.HandleFunc("GET /entities", a.list)
	mux.HandleFunc("GET /entities/{pi}", a.entity)
	mux.HandleFunc("GET /entities/{pi}/versions", a.versions)
	mux.HandleFunc("GET /entities/{pi}/versions/{selector}", a.version)
	mux.HandleFunc("GET /resolve/{pi}", a.resolve)
	mux.HandleFunc("GET /cat/{cid}", a.cat)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			fail(w, http.StatusMethodNotAllowed, "VALIDATION_ERROR", "this server is read-only: use GET or HEAD", nil)
			return
		}
		fail(w, http.StatusNotFound, "NOT_FOUND", "Route not found", nil)
	})
	return mux
}

// originOf returns the root entity. Its children are the roots of the collection.
func originOf(source Source) Entity {
	about := Body{Head: []byte("# Arke\n\nThe root of this server: its children are the collections served here.\n")}
	return Entity{
		PI:         RootPI,
		Versions:   1,
		Children:   source.Roots(),
		Components: []Component{NewComponent("description.md", about)},
		Note:       "root entity",
	}
}

func (a *api) health(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]string{"service": "entity-api", "version": "0", "status": "ok"})
}

// find returns the entity in the path. If it does not exist, find answers the request and
// returns false.
func (a *api) find(w http.ResponseWriter, r *http.Request) (Entity, bool) {
	pi := r.PathValue("pi")
	if !piForm.MatchString(pi) {
		fail(w, http.StatusBadRequest, "VALIDATION_ERROR", "Invalid PI: it must be a ULID of 26 characters",
			map[string]string{"pi": clip(pi)})
		return Entity{}, false
	}
	if pi == RootPI {
		return a.origin, true
	}
	if i, ok := a.source.Index(pi); ok {
		if e := a.source.Entity(i); e.State != Gone {
			a.index.Remember(i, e)
			return e, true
		}
	}
	fail(w, http.StatusNotFound, "NOT_FOUND", "Entity not found: "+pi, map[string]string{"pi": pi})
	return Entity{}, false
}

func (a *api) entity(w http.ResponseWriter, r *http.Request) {
	e, ok := a.find(w, r)
	if !ok {
		return
	}
	refuse, cut := a.faults.next(r, e.PI, e.Fault)
	if refuse {
		busy(w)
		return
	}
	if cut {
		w = &interrupted{ResponseWriter: w}
	}
	answerEntity(w, e)
}

// answerEntity answers with the manifest of an entity, or with the response for a merged or
// deleted one.
func answerEntity(w http.ResponseWriter, e Entity) {
	switch e.State {
	case Merged:
		answer(w, map[string]any{"id": e.PI, "type": "entity", "merged": true, "merged_into": e.MergedInto})
	case Deleted:
		answer(w, map[string]any{"id": e.PI, "type": "entity", "status": "deleted"})
	default:
		answer(w, tip(e))
	}
}

func (a *api) resolve(w http.ResponseWriter, r *http.Request) {
	if e, ok := a.find(w, r); ok {
		answer(w, map[string]any{"pi": e.PI, "tip": tip(e).CID})
	}
}

type listed struct {
	PI  string  `json:"pi"`
	Tip cid.CID `json:"tip"`
}

func (a *api) list(w http.ResponseWriter, r *http.Request) {
	limit, ok := limitOf(w, r, listDefault)
	if !ok {
		return
	}
	from := 0
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		i, found := a.source.Index(cursor)
		if !found {
			fail(w, http.StatusBadRequest, "INVALID_CURSOR", "Invalid cursor", map[string]string{"cursor": clip(cursor)})
			return
		}
		from = i
	}
	page := struct {
		Entities []listed `json:"entities"`
		Limit    int      `json:"limit"`
		Next     *string  `json:"next_cursor"`
	}{Entities: []listed{}, Limit: limit}
	for i := from; i < a.source.Len(); i++ {
		e := a.source.Entity(i)
		if e.State == Gone {
			continue
		}
		if len(page.Entities) == limit {
			page.Next = &e.PI
			break
		}
		page.Entities = append(page.Entities, listed{e.PI, tip(e).CID})
	}
	answer(w, page)
}

type listedVersion struct {
	Ver  int     `json:"ver"`
	CID  cid.CID `json:"cid"`
	TS   string  `json:"ts"`
	Note string  `json:"note,omitempty"`
}

func (a *api) versions(w http.ResponseWriter, r *http.Request) {
	e, ok := a.find(w, r)
	if !ok {
		return
	}
	limit, ok := limitOf(w, r, versionsDefault)
	if !ok {
		return
	}
	from := e.Versions
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		for from > 0 && string(version(e, from).CID) != cursor {
			from--
		}
		if from == 0 {
			fail(w, http.StatusBadRequest, "INVALID_CURSOR", "Invalid cursor", map[string]string{"cursor": clip(cursor)})
			return
		}
	}
	page := struct {
		Items []listedVersion `json:"items"`
		Next  *cid.CID        `json:"next_cursor"`
	}{Items: []listedVersion{}}
	for v := from; v > 0; v-- {
		m := version(e, v)
		if len(page.Items) == limit {
			page.Next = &m.CID
			break
		}
		page.Items = append(page.Items, listedVersion{m.Ver, m.CID, m.TS, m.Note})
	}
	answer(w, page)
}

func (a *api) version(w http.ResponseWriter, r *http.Request) {
	e, ok := a.find(w, r)
	if !ok {
		return
	}
	selector := r.PathValue("selector")
	kind, value, _ := strings.Cut(selector, ":")
	number, err := strconv.Atoi(value)
	if (kind != "ver" || err != nil) && (kind != "cid" || value == "") {
		fail(w, http.StatusBadRequest, "VALIDATION_ERROR", "Invalid selector: ver:N or cid:CID",
			map[string]string{"selector": clip(selector)})
		return
	}
	for v := e.Versions; v > 0; v-- {
		if kind == "ver" && v != number {
			continue
		}
		if m := version(e, v); kind == "ver" || string(m.CID) == value {
			answer(w, m)
			return
		}
	}
	fail(w, http.StatusNotFound, "NOT_FOUND", "Version not found: "+clip(selector), map[string]string{"pi": e.PI})
}

func (a *api) cat(w http.ResponseWriter, r *http.Request) {
	c, digest, err := cid.Parse(r.PathValue("cid"))
	if err != nil {
		fail(w, http.StatusBadRequest, "VALIDATION_ERROR", "Invalid CID", map[string]string{"cid": clip(r.PathValue("cid"))})
		return
	}
	found, ok := a.index.Find(c, digest)
	if !ok {
		found, ok = locate(a.origin, c)
	}
	if !ok || found.Lost {
		fail(w, http.StatusNotFound, "NOT_FOUND", "Content not found: "+string(c), map[string]string{"cid": string(c)})
		return
	}
	refuse, cut := a.faults.next(r, string(c), found.Fault)
	if refuse {
		busy(w)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Length", strconv.FormatInt(found.Body.Size(), 10))
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("ETag", `"`+string(c)+`"`)
	header.Set("X-IPFS-CID", string(c))
	if cut {
		w = &interrupted{ResponseWriter: w, left: found.Body.Size() / 2}
	}
	if r.Method != http.MethodHead {
		_, _ = found.Body.WriteTo(w) // it fails if the client has disconnected
	}
}
