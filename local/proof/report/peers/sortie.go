package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sortie is Sortie as "sortie dev" starts it.
type sortie struct {
	process    *process
	url, token string
}

func (*sortie) name() string       { return "Sortie" }
func (s *sortie) server() *process { return s.process }
func (s *sortie) stop()            { s.process.stop() }

func (s *sortie) start(ctx context.Context, folder string) error {
	path, err := program("sortie")
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	data := filepath.Join(folder, "sortie")
	s.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	if s.process, err = launch(folder, nil, path, "dev", "--addr", fmt.Sprintf("127.0.0.1:%d", port), "--data", data); err != nil {
		return err
	}
	err = until(ctx, "sortie accepts requests", time.Minute, func() bool {
		answer, err := http.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	if err != nil {
		return err
	}
	token, err := os.ReadFile(filepath.Join(data, "token"))
	s.token = strings.TrimSpace(string(token))
	return err
}

func (s *sortie) submit(ctx context.Context, w work, id string) (string, error) {
	path, args := w.command(id)
	var accepted struct {
		TaskID string `json:"taskId"`
	}
	err := s.call(ctx, http.MethodPost, "/v1/runs", map[string]any{"image": "exec:" + path, "command": args}, &accepted)
	return accepted.TaskID, err
}

func (s *sortie) wait(ctx context.Context, run string) error {
	for {
		var status struct{ Status, State string }
		if err := s.call(ctx, http.MethodGet, "/status/"+run+"?wait=20", nil, &status); err != nil {
			return err
		}
		switch status.Status {
		case "success":
			return nil
		case "error":
			return fmt.Errorf("run %s ended in %s", run, status.State)
		}
	}
}

var clients = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

func (s *sortie) call(ctx context.Context, method, path string, body, answer any) error {
	response, err := call(ctx, method, s.url+path, body, "Authorization", "Bearer "+s.token)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(answer)
}

// call sends a JSON document, or nothing for nil. A status of 300 and more is an error.
func call(ctx context.Context, method, url string, body any, header ...string) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if body == nil {
		text = nil
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := clients.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		return nil, errors.Join(fmt.Errorf("%s %s: %d %.500s", method, url, response.StatusCode, text), err)
	}
	return response, nil
}
