package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/sortie-dev/sortie/shared/sdk/go/client"
)

// redirects limits the redirects of a download.
const redirects = 3

// Output is an open download of a task's output. The caller closes Body.
type Output struct {
	Body io.ReadCloser
	// FileName is the name in the Content-Disposition header, unchecked; it
	// may be empty.
	FileName string
	// Start is the offset of the body's first byte in the file.
	Start int64
	// Size is the size of the whole file in bytes, -1 if unknown.
	Size int64
	// ETag is the file's strong ETag. It is empty for a weak one, which does not identify
	// bytes.
	ETag string
}

// Open starts a download of a task's output at the offset from. Output.Start is 0 if the file
// no longer has the etag or the server does not support ranges.
func (c *Client) Open(ctx context.Context, taskID string, from int64, etag string) (*Output, error) {
	var out *Output
	err := c.retry(ctx, func() (err error) {
		out, err = c.open(ctx, taskID, from, etag)
		return err
	})
	return out, err
}

func (c *Client) open(ctx context.Context, taskID string, from int64, etag string) (*Output, error) {
	req, err := c.api.NewRequest(ctx, call{method: http.MethodGet, path: "download/" + url.PathEscape(taskID)}.request())
	if err != nil {
		return nil, err
	}
	redirectedBefore := false
	for range redirects + 1 {
		req.Header.Set("Accept", "*/*")
		req.Header.Set("Accept-Encoding", "identity")
		if from > 0 && etag != "" {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
			req.Header.Set("If-Range", etag)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return nil, lost(ctx, req.URL, err)
		}
		switch resp.StatusCode {
		case http.StatusOK, http.StatusPartialContent:
			out, err := output(resp)
			if err != nil {
				return nil, errors.Join(err, resp.Body.Close())
			}
			return out, nil
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
			http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			_ = resp.Body.Close()
			redirectedBefore = true
			if req, err = redirected(ctx, resp, c.agent); err != nil {
				return nil, err
			}
		default:
			refused := sdk.ErrorOf(resp)
			_ = resp.Body.Close()
			if !redirectedBefore {
				return nil, refused
			}
			p := problem(req.URL, refused)
			p.Foreign, p.Message = false, "the object store responds with "+resp.Status
			return nil, &elsewhere{p, refused}
		}
	}
	return nil, fmt.Errorf("the download has more than %d redirects", redirects)
}

// redirected returns the request for the target of a redirect. It carries no
// token: the target belongs to another server, and its URL is the credential.
func redirected(ctx context.Context, resp *http.Response, agent string) (*http.Request, error) {
	target, err := resp.Location()
	if err != nil {
		return nil, errors.New("the redirect of the download has no valid Location")
	}
	if target.Scheme != "https" && target.Scheme != resp.Request.URL.Scheme {
		return nil, fmt.Errorf("the download is redirected to a URL with the scheme %q, want https", target.Scheme)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, errors.New("the download is redirected to a malformed URL")
	}
	if agent != "" {
		req.Header.Set("User-Agent", agent)
	}
	return req, nil
}

func output(resp *http.Response) (*Output, error) {
	out := &Output{Body: resp.Body, Size: resp.ContentLength, ETag: resp.Header.Get("ETag")}
	if strings.HasPrefix(out.ETag, "W/") {
		out.ETag = ""
	}
	if _, values, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
		out.FileName = values["filename"]
	}
	if resp.StatusCode == http.StatusPartialContent {
		var last int64
		text := resp.Header.Get("Content-Range")
		if n, _ := fmt.Sscanf(text, "bytes %d-%d/%d", &out.Start, &last, &out.Size); n != 3 || out.Start < 0 || out.Size <= last {
			return nil, fmt.Errorf("malformed Content-Range %q", text)
		}
	}
	return out, nil
}
