package inference

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// PlaygroundPage asks a model. Its form shows the whole answer. With JavaScript the answer is
// shown while it is generated.
var PlaygroundPage = page.Page{
	Name: "playground", Path: "inference/playground", Scope: access.RunsRead, Query: []string{"model", "task"}, Show: showPlayground,
	Actions: []page.Action{{Path: "inference/playground", Scope: access.RunsWrite, Show: ask}},
}

// answerWait is how long a page waits for an answer. The answer continues after it.
const answerWait = 25 * time.Second

// playgroundData is the content of the page.
type playgroundData struct {
	Models []string
	// Question is what the form has.
	Question contract.TaskRequest
	System   string
	Key      string
	Answer   *answerView
	// Refused is why the API refused the question; nil without a refusal.
	Refused *contract.Problem
}

// answerView is the answer of a task, as far as it is known.
type answerView struct {
	contract.Task
	Text, Reasoning string
	End             *inference.End
	Failure         *inference.Failure
	// Rate is the number of tokens a second; 0 if unknown. First is the time until the first
	// token; 0 if it was generated before the page was requested.
	Rate  float64
	First time.Duration
	// Live: the page follows the stream itself.
	Live bool
	Curl string
}

// Whole reports whether the answer has ended.
func (a *answerView) Whole() bool { return a.End != nil || a.Failure != nil }

func showPlayground(v *page.Visit) (page.View, error) {
	data, err := showAnswer(v, contract.TaskRequest{ModelRef: v.Request.URL.Query().Get("model")})
	if err != nil {
		return page.View{}, err
	}
	if id := v.Request.URL.Query().Get("task"); id != "" {
		data.Answer = &answerView{}
		if err := awaitAnswer(v, data.Answer, id); err != nil {
			return page.View{}, err
		}
	}
	return data.view(), nil
}

// showAnswer returns the form with a question.
func showAnswer(v *page.Visit, q contract.TaskRequest) (playgroundData, error) {
	data := playgroundData{Question: q, Key: v.FormKey("ask")}
	var found contract.Capabilities
	if err := v.Get("/v1/capabilities", nil, &found); err != nil {
		return data, err
	}
	for _, e := range found.Engines {
		if slices.Contains(e.SupportedWorkloads, "completion") {
			data.Models = append(data.Models, e.Models...)
		}
	}
	slices.Sort(data.Models)
	data.Models = slices.Compact(data.Models)
	return data, nil
}

func (d playgroundData) view() page.View {
	q := d.Question
	line := ui.Command("ask", cmp.Or(q.ModelRef, "MODEL"), cmp.Or(q.Prompt, "PROMPT"))
	if d.System != "" {
		line += " --system " + ui.Quoted(d.System)
	}
	return page.View{Title: "Playground", JSON: "/v1/capabilities", Command: line, Content: d.content}
}

// ask creates a task and shows its answer. The form has a key, so a form that is sent twice
// creates one task.
func ask(v *page.Visit) (string, page.View, error) {
	form := v.Request.PostForm
	q := contract.TaskRequest{ModelRef: form.Get("model"), Prompt: form.Get("prompt"), SessionID: strings.TrimSpace(form.Get("session"))}
	if err := readNumbers(&q, form); err != nil {
		return "", page.View{}, err
	}
	system := form.Get("system")
	data, err := showAnswer(v, q)
	if err != nil {
		return "", page.View{}, err
	}
	if data.System = system; system != "" {
		prompt := q.Prompt
		q.Prompt, q.Messages = "", []contract.TaskMessage{{Role: "system", Content: &system}, {Role: "user", Content: &prompt}}
	}
	header := http.Header{}
	if key := form.Get("key"); key != "" {
		header.Set("Idempotency-Key", key)
	}
	response, err := v.Call(http.MethodPost, "/v1/tasks", nil, q, header)
	if err != nil {
		return "", page.View{}, err
	}
	var accepted contract.TaskAccepted
	err = page.Read(response, &accepted)
	if p := page.ProblemOf(err); p != nil { // the reader changes the question
		data.Refused = &p.Body
		return "playground", data.view(), nil //nolint:nilerr // the page shows the problem
	}
	if err != nil {
		return "", page.View{}, err
	}
	data.Answer = &answerView{Live: form.Get("live") != ""}
	if err := awaitAnswer(v, data.Answer, accepted.TaskID); err != nil {
		return "", page.View{}, err
	}
	text, err := json.Marshal(q)
	if err != nil {
		return "", page.View{}, err
	}
	data.Answer.Curl = "curl " + ui.Quoted(v.Config.URL+"/v1/tasks") + ` -H "Authorization: Bearer $SORTIE_TOKEN" -H 'Content-Type: application/json' -d ` + ui.Quoted(string(text))
	return "playground", data.view(), nil
}

// awaitAnswer reads a task and its answer, unless the page follows it itself.
func awaitAnswer(v *page.Visit, a *answerView, id string) error {
	if !a.Live {
		if err := readAnswer(v, a, id); err != nil {
			return err
		}
	}
	return v.Get("/v1/tasks/"+url.PathEscape(id), nil, &a.Task)
}

// readAnswer reads the stream of a task to its end, or for answerWait.
func readAnswer(v *page.Visit, a *answerView, id string) error {
	ctx, stop := context.WithCancel(v.Request.Context())
	defer stop()
	over, cancel := v.Config.Clock.NewTimer(answerWait)
	defer cancel()
	go func() {
		select {
		case <-over:
			stop()
		case <-ctx.Done():
		}
	}()
	own := *v
	own.Request = v.Request.WithContext(ctx)
	begun := v.Now()
	response, err := own.Call(http.MethodGet, "/v1/tasks/"+url.PathEscape(id)+"/stream", nil, nil, nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return page.Read(response, nil)
	}
	defer func() { _ = response.Body.Close() }()
	from := bufio.NewReader(io.LimitReader(response.Body, page.AnswerLimit))
	name := ""
	for {
		line, err := from.ReadBytes('\n')
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fault.Wrap(err, fault.Unavailable, "the answer was interrupted; retry")
		}
		if text, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			name = string(bytes.TrimSpace(text))
		}
		text, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		if err := a.add(name, text); err != nil {
			return fault.Wrap(err, fault.Unavailable, "the answer has a malformed event")
		}
		if a.First == 0 && (a.Text != "" || a.Reasoning != "") {
			a.First = v.Now().Sub(begun)
		}
	}
}

// add adds an event of the stream.
func (a *answerView) add(name string, data []byte) error {
	switch name {
	case inference.NameToken:
		var t inference.Token
		err := json.Unmarshal(data, &t)
		a.Text += t.T
		return err
	case inference.NameReasoning:
		var t inference.Reasoning
		err := json.Unmarshal(data, &t)
		a.Reasoning += t.T
		return err
	case inference.NameEnd:
		a.End = &inference.End{}
		err := json.Unmarshal(data, a.End)
		a.Rate = rateOf(&a.End.TokensOut, &a.End.DecodeMS)
		return err
	case inference.NameError:
		a.Failure = &inference.Failure{}
		return json.Unmarshal(data, a.Failure)
	}
	return nil
}

// readNumbers reads the numbers of the form. An empty field is the default.
func readNumbers(q *contract.TaskRequest, form url.Values) error {
	if text := strings.TrimSpace(form.Get("max_tokens")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fault.Invalid("max_tokens", "malformed number, want a whole number")
		}
		q.MaxTokens = &n
	}
	if text := strings.TrimSpace(form.Get("temperature")); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != n {
			return fault.Invalid("temperature", "malformed number, want 0 to 2")
		}
		q.Temperature = &n
	}
	return nil
}
