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
)

// redirects is how often a download may be sent on.
const redirects = 3

// Output is a task's output while it is read. Its reader closes Body.
type Output struct {
	Body io.ReadCloser
	// FileName is what the server calls the file, as it stands in the header;
	// empty where it does not say.
	FileName string
	// Start is the place of the body's first byte in the file.
	Start int64
	// Size is the whole file's, in bytes; -1 where the server does not say.
	Size int64
	// ETag is the file's; only a strong one is kept, because only that one says
	// that two reads are of the same bytes.
	ETag string
}

// Open begins to read a task's output from the byte from. With an etag the
// answer begins there only if the file is still that one; otherwise, and where
// the server knows no ranges, Start is 0.
func (c *Client) Open(ctx context.Context, taskID string, from int64, etag string) (*Output, error) {
	var out *Output
	err := c.bear(ctx, func() (err error) {
		out, err = c.open(ctx, taskID, from, etag)
		return err
	})
	return out, err
}

func (c *Client) open(ctx context.Context, taskID string, from int64, etag string) (*Output, error) {
	req, err := c.request(ctx, call{method: http.MethodGet, path: "download/" + url.PathEscape(taskID)})
	if err != nil {
		return nil, err
	}
	for range redirects + 1 {
		req.Header.Set("Accept", "*/*")
		req.Header.Set("Accept-Encoding", "identity")
		if from > 0 && etag != "" {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
			req.Header.Set("If-Range", etag)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return nil, c.broken(ctx, req.URL, err)
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
			if req, err = onward(ctx, resp, c.agent); err != nil {
				return nil, err
			}
		default:
			err := problem(resp)
			_ = resp.Body.Close() // what it said is read
			return nil, err
		}
	}
	return nil, errors.New("the download was redirected too often")
}

// onward makes the request that a redirect asks for. It carries no token: the
// new address has its own in the URL, and is somebody else's.
func onward(ctx context.Context, resp *http.Response, agent string) (*http.Request, error) {
	target, err := resp.Location()
	if err != nil {
		return nil, errors.New("the download was redirected to nowhere")
	}
	if target.Scheme != "https" && target.Scheme != resp.Request.URL.Scheme {
		return nil, fmt.Errorf("the download was redirected to an address with %q, which is not safe", target.Scheme)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, errors.New("the download was redirected to an address that is none")
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
			return nil, errors.New("the server sent a part of the file and did not say which")
		}
	}
	return out, nil
}
