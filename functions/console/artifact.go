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

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// artifactsPage lists the artifacts of the registry, the newest first.
var artifactsPage = page{
	name: "artifacts", path: "artifacts", scope: access.RunsRead, query: append([]string{"cursor", "id"}, artifactFilters...), show: showArtifacts,
}

// artifactPage shows an artifact with a preview.
var artifactPage = page{name: "artifact", path: "artifacts/{artifact_id}", scope: access.RunsRead, show: showArtifact}

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
	Chips     []chip
	Pager     pager
}

func showArtifacts(v *visit) (view, error) {
	query := v.r.URL.Query()
	if id := strings.TrimSpace(query.Get("id")); id != "" {
		return view{}, seeOther(artifactPath(id))
	}
	filter, flags := url.Values{}, []string{"artifacts", "list"}
	for _, name := range artifactFilters {
		if value := strings.TrimSpace(query.Get(name)); value != "" {
			filter.Set(name, value)
			flags = append(flags, "--"+name, value)
		}
	}
	asked := extended(filter, "limit", artifactsLimit)
	if cursor := query.Get("cursor"); cursor != "" {
		asked.Set("cursor", cursor)
	}
	var list contract.ArtifactList
	if err := v.get("/v1/artifacts", asked, &list); err != nil {
		return view{}, err
	}
	data := artifactsData{list.Artifacts, filter, chipsOf("artifacts", filter), pagerOf("artifacts", filter, query.Get("cursor"), list.NextCursor)}
	return view{Title: "Artifacts", JSON: address("/v1/artifacts", asked), Command: command(flags...), Content: data.content}, nil
}

// artifactData is the content of the page for an artifact.
type artifactData struct {
	contract.ArtifactSummary
	Preview *preview
}

func showArtifact(v *visit) (view, error) {
	var data artifactData
	path, err := v.artifact(&data.ArtifactSummary)
	if err != nil {
		return view{}, err
	}
	if data.Preview, err = v.artifactPreview(path, data.ArtifactSummary); err != nil {
		return view{}, err
	}
	return view{
		Title: "Artifact " + short(20, data.ID), JSON: path + "?content=false",
		Command: command("artifacts", choose(data.MediaType == httpkit.TypeJSON, "show", "get"), data.ID), Content: data.content,
	}, nil
}

// artifact reads the description of the artifact in the path, and returns its path in the API.
func (v *visit) artifact(into *contract.ArtifactSummary) (path string, err error) {
	path = "/v1/artifacts/" + url.PathEscape(v.r.PathValue("artifact_id"))
	return path, v.get(path, url.Values{"content": {"false"}}, into)
}

// artifactPreview reads the beginning of an artifact.
func (v *visit) artifactPreview(path string, a contract.ArtifactSummary) (*preview, error) {
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
		if err := v.get(path, nil, &whole); err != nil {
			return nil, err
		}
		text := indented(whole.Content)
		return &preview{Text: text, Whole: true}, nil
	case !readable(kind):
		return nil, nil //nolint:nilnil // it has no preview
	}
	text, err := v.artifactBytes(path, min(a.Size, previewLimit))
	if err != nil {
		return nil, err
	}
	return previewOf(kind, text, a.Size <= previewLimit), nil
}

// artifactBytes reads the first bytes of an artifact that is not JSON.
func (v *visit) artifactBytes(path string, size int64) ([]byte, error) {
	response, err := v.call(http.MethodGet, path, nil, nil, http.Header{"Range": {fmt.Sprintf("bytes=0-%d", size-1)}})
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, read(response, nil)
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
	path, err := v.artifact(&a)
	if err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(a.MediaType)
	if !slices.Contains(pictures, kind) || a.Size == 0 || a.Size > pictureLimit {
		return fault.New(fault.NotFound, "the artifact is no picture in PNG, JPEG or GIF of at most 8 MiB")
	}
	content, err := v.artifactBytes(path, a.Size)
	if err != nil {
		return err
	}
	return servePicture(w, kind, content)
}

// readArtifacts reads the newest artifacts with the tag of the run.
func (d *runData) readArtifacts(v *visit) error {
	var list contract.ArtifactList
	err := v.get("/v1/artifacts", url.Values{"tag": {taskTag + d.TaskID}, "limit": {runArtifacts}}, &list)
	d.Artifacts = list.Artifacts
	return err
}

// taskTag is the beginning of the tag that names the task of an artifact.
const taskTag = "task:"

// artifactPath returns the address of an artifact, below the console.
func artifactPath(id string) string { return "artifacts/" + url.PathEscape(id) }

// createdAt returns the time of an artifact.
func createdAt(a contract.ArtifactSummary) time.Time { return time.UnixMilli(a.CreatedMS) }

// isArtifact reports whether a text is the id of an artifact: a SHA-256.
func isArtifact(text string) bool {
	text = strings.TrimPrefix(text, "sha256:")
	return len(text) == 64 && !slices.ContainsFunc([]byte(text), func(c byte) bool { return !strings.ContainsRune("0123456789abcdef", rune(c)) })
}
