package console

import (
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
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// artifactsPage lists the artifacts of the registry, the newest first.
var artifactsPage = page.Page{
	Name: "artifacts", Path: "artifacts", Scope: access.RunsRead, Query: append([]string{"cursor", "id"}, artifactFilters...), Show: showArtifacts,
}

// artifactPage shows an artifact with a preview.
var artifactPage = page.Page{Name: "artifact", Path: "artifacts/{artifact_id}", Scope: access.RunsRead, Show: showArtifact}

// artifactFilters are the query parameters that the API's list of artifacts has, too.
var artifactFilters = []string{"kind", "tag", "parent"}

// artifactsLimit is the number of artifacts on a page. A page of a run shows runArtifacts of them.
const (
	artifactsLimit = "50"
	runArtifacts   = "10"
)

// artifactsData is the content of the list.
type artifactsData struct {
	Artifacts []contract.ArtifactSummary
	Filter    url.Values
	Chips     []ui.Chip
	Pager     ui.Pager
}

func showArtifacts(v *page.Visit) (page.View, error) {
	query := v.Request.URL.Query()
	if id := strings.TrimSpace(query.Get("id")); id != "" {
		return page.View{}, page.SeeOther(ui.ArtifactPath(id))
	}
	filter, flags := url.Values{}, []string{"artifacts", "list"}
	for _, name := range artifactFilters {
		if value := strings.TrimSpace(query.Get(name)); value != "" {
			filter.Set(name, value)
			flags = append(flags, "--"+name, value)
		}
	}
	asked := page.Extended(filter, "limit", artifactsLimit)
	if cursor := query.Get("cursor"); cursor != "" {
		asked.Set("cursor", cursor)
	}
	var list contract.ArtifactList
	if err := v.Get("/v1/artifacts", asked, &list); err != nil {
		return page.View{}, err
	}
	data := artifactsData{list.Artifacts, filter, ui.ChipsOf("artifacts", filter), ui.PagerOf("artifacts", filter, query.Get("cursor"), list.NextCursor)}
	return page.View{Title: "Artifacts", JSON: ui.WithQuery("/v1/artifacts", asked), Command: ui.Command(flags...), Content: data.content}, nil
}

// artifactData is the content of the page for an artifact.
type artifactData struct {
	contract.ArtifactSummary
	Preview *preview
}

func showArtifact(v *page.Visit) (page.View, error) {
	var data artifactData
	path, err := readArtifact(v, &data.ArtifactSummary)
	if err != nil {
		return page.View{}, err
	}
	if data.Preview, err = artifactPreview(v, path, data.ArtifactSummary); err != nil {
		return page.View{}, err
	}
	return page.View{
		Title: "Artifact " + ui.Short(20, data.ID), JSON: path + "?content=false",
		Command: ui.Command("artifacts", ui.Choose(data.MediaType == httpkit.TypeJSON, "show", "get"), data.ID), Content: data.content,
	}, nil
}

// readArtifact reads the description of the artifact in the path, and returns its path in the API.
func readArtifact(v *page.Visit, into *contract.ArtifactSummary) (path string, err error) {
	path = "/v1/artifacts/" + url.PathEscape(v.Request.PathValue("artifact_id"))
	return path, v.Get(path, url.Values{"content": {"false"}}, into)
}

// artifactPreview reads the beginning of an artifact.
func artifactPreview(v *page.Visit, path string, a contract.ArtifactSummary) (*preview, error) {
	kind, _, err := mime.ParseMediaType(a.MediaType)
	picture := slices.Contains(pictures, kind)
	switch {
	case err != nil, a.Size == 0:
		return nil, nil //nolint:nilerr,nilnil // an unknown type has no preview
	case picture && a.Size <= pictureLimit:
		return &preview{Picture: true}, nil
	case kind == httpkit.TypeJSON:
		var whole struct {
			Content json.RawMessage `json:"content"`
		}
		if err := v.Get(path, nil, &whole); err != nil {
			return nil, err
		}
		text := ui.Indented(whole.Content)
		return &preview{Text: text, Whole: true}, nil
	case !readable(kind):
		return nil, nil //nolint:nilnil // it has no preview
	}
	text, err := artifactBytes(v, path, min(a.Size, previewLimit))
	if err != nil {
		return nil, err
	}
	return previewOf(kind, text, a.Size <= previewLimit), nil
}

// artifactBytes reads the first bytes of an artifact that is not JSON.
func artifactBytes(v *page.Visit, path string, size int64) ([]byte, error) {
	response, err := v.Call(http.MethodGet, path, nil, nil, http.Header{"Range": {fmt.Sprintf("bytes=0-%d", size-1)}})
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, page.Read(response, nil)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, size))
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the artifact was interrupted; retry")
	}
	return text, nil
}

// artifactPicture serves an artifact that is a picture, as picture does with an output.
func (c *console) artifactPicture(w http.ResponseWriter, r *http.Request) error {
	v, err := c.begin(r)
	if err != nil {
		return err
	}
	var a contract.ArtifactSummary
	path, err := readArtifact(v, &a)
	if err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(a.MediaType)
	if !slices.Contains(pictures, kind) || a.Size == 0 || a.Size > pictureLimit {
		return fault.New(fault.NotFound, "the artifact is no picture in PNG, JPEG or GIF of at most 8 MiB")
	}
	content, err := artifactBytes(v, path, a.Size)
	if err != nil {
		return err
	}
	return servePicture(w, kind, content)
}

// readArtifacts reads the newest artifacts with the tag of the run.
func (d *runData) readArtifacts(v *page.Visit) error {
	var list contract.ArtifactList
	err := v.Get("/v1/artifacts", url.Values{"tag": {taskTag + d.TaskID}, "limit": {runArtifacts}}, &list)
	d.Artifacts = list.Artifacts
	return err
}

// taskTag is the beginning of the tag that names the task of an artifact.
const taskTag = "task:"

// createdAt returns the time of an artifact.
func createdAt(a contract.ArtifactSummary) time.Time { return time.UnixMilli(a.CreatedMS) }

// isArtifact reports whether a text is the id of an artifact: a SHA-256.
func isArtifact(text string) bool {
	text = strings.TrimPrefix(text, "sha256:")
	return len(text) == 64 && !slices.ContainsFunc([]byte(text), func(c byte) bool { return !strings.ContainsRune("0123456789abcdef", rune(c)) })
}
