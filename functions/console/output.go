package console

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// preview is the beginning of an output: a picture, a table or a text.
type preview struct {
	// Picture: the route of picture serves the output.
	Picture bool
	// Rows are the records of a table, the first one with the headings.
	Rows  [][]string
	Text  string
	Whole bool
}

// The largest parts of an output that a page shows: bytes of text, rows and columns of a table,
// and bytes of a picture.
const (
	previewLimit   = 16 << 10
	previewRows    = 100
	previewColumns = 30
	pictureLimit   = 8 << 20
)

// readOutput reads the beginning of an output that is text.
func (d *runData) readOutput(v *page.Visit) error {
	o := d.Task.Output
	if o == nil || o.Size < 1 || !kept(o, v.Now()) {
		return nil
	}
	kind, _, err := mime.ParseMediaType(o.ContentType)
	if slices.Contains(pictures, kind) && o.Size <= pictureLimit {
		d.Output = &preview{Picture: true}
		return nil
	}
	if err != nil || !readable(kind) {
		return nil //nolint:nilerr // an unknown type has no preview
	}
	text, whole, err := outputStart(v, d.TaskID, o.Size, previewLimit)
	if err != nil || text == nil {
		return err
	}
	d.Output = previewOf(kind, text, whole)
	return nil
}

// kept reports whether an output is still stored.
func kept(o *contract.Output, now time.Time) bool {
	return o.DeletedAt.IsZero() && (o.ExpiresAt.IsZero() || now.Before(o.ExpiresAt))
}

// outputStart reads the first bytes of an output. A preview is no download: it does not shorten the
// retention. whole reports that this is all of it. The text is nil if the API does not serve a part.
func outputStart(v *page.Visit, taskID string, bytes, most int64) (text []byte, whole bool, err error) {
	size := min(most, bytes)
	response, err := v.Call(
		http.MethodGet, "/download/"+url.PathEscape(taskID), url.Values{"retain": {"true"}}, nil, http.Header{"Range": {fmt.Sprintf("bytes=0-%d", size-1)}},
	)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, false, nil
	}
	text, err = io.ReadAll(io.LimitReader(response.Body, size))
	if err != nil {
		return nil, false, fault.Wrap(err, fault.Unavailable, "the output was interrupted; retry")
	}
	return text, size == bytes, nil
}

// previewOf returns the preview of a text. JSON is indented and CSV is a table, if they can be read.
func previewOf(kind string, text []byte, whole bool) *preview {
	p := &preview{Text: ui.Visible(strings.ToValidUTF8(string(text), "�")), Whole: whole}
	switch {
	case whole && strings.HasSuffix(kind, "json") && json.Valid(text):
		p.Text = ui.Indented(text)
	case kind == "text/csv", kind == "text/tab-separated-values":
		p.Rows = rowsOf(text, ui.Choose(kind == "text/csv", ',', '\t'))
		p.Whole = whole && len(p.Rows) < previewRows
	}
	return p
}

// rowsOf returns the first records of a table. The last record of the text may be incomplete, and
// is left out. The result is nil if the text has fewer than two fields or is no table.
func rowsOf(text []byte, comma rune) (rows [][]string) {
	if end := bytes.LastIndexByte(text, '\n'); end > 0 && end < len(text)-1 && len(text) >= previewLimit {
		text = text[:end]
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.Comma, reader.FieldsPerRecord, reader.LazyQuotes = comma, -1, true
	for len(rows) < previewRows {
		record, err := reader.Read()
		if err != nil {
			break
		}
		rows = append(rows, record[:min(len(record), previewColumns)])
	}
	if len(rows) == 0 || len(rows[0]) < 2 {
		return nil
	}
	return rows
}

// readable reports whether a media type is text that a page can show.
func readable(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml") || strings.HasSuffix(kind, "yaml")
}

// pictures are the media types of pictures that pages show.
var pictures = []string{"image/png", "image/jpeg", "image/gif"}

// picture serves an output that is a picture, for a page of this origin. Its type is one of
// pictures, so browsers do not read it as a page.
func (c *console) picture(w http.ResponseWriter, r *http.Request) error {
	v, err := c.begin(r)
	if err != nil {
		return err
	}
	var task contract.Task
	if err := v.Get("/v1/runs/"+url.PathEscape(r.PathValue("run_id")), nil, &task); err != nil {
		return err
	}
	o := task.Output
	if o == nil || o.Size < 1 || o.Size > pictureLimit || !kept(o, v.Now()) {
		return fault.New(fault.NotFound, "the run has no picture")
	}
	kind, _, _ := mime.ParseMediaType(o.ContentType)
	if !slices.Contains(pictures, kind) {
		return fault.New(fault.NotFound, "the output is no picture in PNG, JPEG or GIF")
	}
	text, whole, err := outputStart(v, task.TaskID, o.Size, o.Size)
	if err != nil || !whole {
		return cmp.Or(err, error(fault.New(fault.NotFound, "the output is not available")))
	}
	return servePicture(w, kind, text)
}

// servePicture writes a picture. Its type is one of pictures.
func servePicture(w http.ResponseWriter, kind string, content []byte) error {
	w.Header().Set("Content-Security-Policy", sandbox)
	w.Header().Set("Cache-Control", "no-store")
	return httpkit.WriteBytes(w, http.StatusOK, kind, content)
}
