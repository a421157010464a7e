package openai_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// What becomes of a member of OpenAI's API.
const (
	// works: the stored request has it.
	works = "works"
	// answers: it is about the form of the answer, or about the task.
	answers = "answers"
	// ignored: it has no effect on the answer, so the stored request is that without it.
	ignored = "ignored"
	// refused: the error names it.
	refused = "refused"
)

const function = `"tools":[{"type":"function","function":{"name":"f"}}]`

// ofChats has all members of OpenAI's chat completions, besides the model and the messages.
var ofChats = map[string]struct{ members, want string }{
	"audio":                  {`"audio":{"voice":"a","format":"mp3"}`, refused},
	"frequency_penalty":      {`"frequency_penalty":1`, works},
	"function_call":          {`"function_call":{"name":"f"}`, refused},
	"functions":              {`"functions":[{"name":"f"}]`, refused},
	"logit_bias":             {`"logit_bias":{"7":1}`, works},
	"logprobs":               {`"logprobs":true`, works},
	"max_completion_tokens":  {`"max_completion_tokens":3`, works},
	"max_tokens":             {`"max_tokens":3`, works},
	"metadata":               {`"metadata":{"a":"b"}`, ignored},
	"modalities":             {`"modalities":["text","audio"]`, refused},
	"n":                      {`"n":2`, works},
	"parallel_tool_calls":    {`"parallel_tool_calls":false,` + function, works},
	"prediction":             {`"prediction":{"type":"content","content":"a"}`, ignored},
	"presence_penalty":       {`"presence_penalty":1`, works},
	"prompt_cache_key":       {`"prompt_cache_key":"a"`, ignored},
	"prompt_cache_retention": {`"prompt_cache_retention":"24h"`, ignored},
	"reasoning_effort":       {`"reasoning_effort":"low"`, works},
	"response_format":        {`"response_format":{"type":"json_object"}`, works},
	"safety_identifier":      {`"safety_identifier":"a"`, ignored},
	"seed":                   {`"seed":7`, works},
	"service_tier":           {`"service_tier":"flex"`, ignored},
	"stop":                   {`"stop":"x"`, works},
	"store":                  {`"store":true`, answers},
	"stream":                 {`"stream":false`, answers},
	"stream_options":         {`"stream_options":{"include_usage":true}`, answers},
	"temperature":            {`"temperature":0.5`, works},
	"tool_choice":            {`"tool_choice":"required",` + function, works},
	"tools":                  {function, works},
	"top_logprobs":           {`"logprobs":true,"top_logprobs":2`, works},
	"top_p":                  {`"top_p":0.5`, works},
	"user":                   {`"user":"a"`, ignored},
	"verbosity":              {`"verbosity":"low"`, ignored},
	"web_search_options":     {`"web_search_options":{"search_context_size":"low"}`, refused},
	"a_new_member":           {`"a_new_member":1`, refused},
}

// ofCompletions has those of completions, besides the model and the prompt.
var ofCompletions = map[string]struct{ members, want string }{
	"best_of":           {`"best_of":2`, refused},
	"echo":              {`"echo":true`, refused},
	"frequency_penalty": {`"frequency_penalty":1`, works},
	"logit_bias":        {`"logit_bias":{"7":1}`, works},
	"logprobs":          {`"logprobs":1`, works},
	"max_tokens":        {`"max_tokens":3`, works},
	"n":                 {`"n":2`, works},
	"presence_penalty":  {`"presence_penalty":1`, works},
	"prompt":            {`"prompt":["a","b"]`, works},
	"seed":              {`"seed":7`, works},
	"stop":              {`"stop":["x"]`, works},
	"stream":            {`"stream":false`, answers},
	"suffix":            {`"suffix":"a"`, refused},
	"temperature":       {`"temperature":0.5`, works},
	"top_p":             {`"top_p":0.5`, works},
	"user":              {`"user":"a"`, ignored},
	"a_new_member":      {`"a_new_member":1`, refused},
}

// ofResponses has those of responses, besides the model, the input and previous_response_id. The
// stored request has the members that the response repeats.
var ofResponses = map[string]struct{ members, want string }{
	"background":             {`"background":false`, answers},
	"context_management":     {`"context_management":[{"type":"compaction"}]`, refused},
	"conversation":           {`"conversation":"conv_1"`, refused},
	"include":                {`"include":["message.output_text.logprobs"]`, works},
	"instructions":           {`"instructions":"a"`, works},
	"max_output_tokens":      {`"max_output_tokens":3`, works},
	"max_tool_calls":         {`"max_tool_calls":1`, ignored},
	"metadata":               {`"metadata":{"a":"b"}`, works},
	"parallel_tool_calls":    {`"parallel_tool_calls":false,"tools":[{"type":"function","name":"f"}]`, works},
	"prompt":                 {`"prompt":{"id":"a"}`, refused},
	"prompt_cache_key":       {`"prompt_cache_key":"a"`, ignored},
	"prompt_cache_retention": {`"prompt_cache_retention":"24h"`, ignored},
	"reasoning.effort":       {`"reasoning":{"effort":"low"}`, works},
	"reasoning.summary":      {`"reasoning":{"summary":"auto"}`, refused},
	"safety_identifier":      {`"safety_identifier":"a"`, ignored},
	"service_tier":           {`"service_tier":"flex"`, ignored},
	"store":                  {`"store":true`, answers},
	"stream":                 {`"stream":false`, answers},
	"stream_options":         {`"stream_options":{"include_obfuscation":false}`, ignored},
	"temperature":            {`"temperature":0.5`, works},
	"text":                   {`"text":{"format":{"type":"json_object"}}`, works},
	"tool_choice":            {`"tool_choice":"required","tools":[{"type":"function","name":"f"}]`, works},
	"tools":                  {`"tools":[{"type":"function","name":"f"}]`, works},
	"top_logprobs":           {`"top_logprobs":2`, works},
	"top_p":                  {`"top_p":0.5`, works},
	"truncation":             {`"truncation":"auto"`, refused},
	"user":                   {`"user":"a"`, ignored},
	"a_new_member":           {`"a_new_member":1`, refused},
}

// ofEmbeddings has those of embeddings, besides the model.
var ofEmbeddings = map[string]struct{ members, want string }{
	"dimensions":      {`"dimensions":4`, works},
	"encoding_format": {`"encoding_format":"base64"`, answers},
	"input":           {`"input":["a","b"]`, works},
	"user":            {`"user":"a"`, ignored},
	"a_new_member":    {`"a_new_member":1`, refused},
}

// TestEveryMemberWorksOrIsRefused sends each member of OpenAI's API. One that is accepted is in the
// stored request, unless it cannot change the answer.
func TestEveryMemberWorksOrIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for path, of := range map[string]struct {
		base string
		rows map[string]struct{ members, want string }
	}{
		"/v1/chat/completions": {`{"model":"mock","max_tokens":2,"messages":[{"role":"user","content":"a"}]}`, ofChats},
		"/v1/completions":      {`{"model":"mock","max_tokens":2,"prompt":"a"}`, ofCompletions},
		"/v1/embeddings":       {`{"model":"mock","input":"a"}`, ofEmbeddings},
		"/v1/responses":        {`{"model":"mock","max_output_tokens":2,"input":"a"}`, ofResponses},
	} {
		// stored returns the response to a request with further members, and the stored request.
		stored := func(members string) (answer apitest.Answer, request string) {
			body := map[string]json.RawMessage{}
			for _, text := range []string{of.base, "{" + members + "}"} {
				more := map[string]json.RawMessage{}
				if err := json.Unmarshal([]byte(text), &more); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				maps.Copy(body, more)
			}
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			answer = s.Call(t, http.MethodPost, path, string(text))
			if path == "/v1/embeddings" { // its answer has no id
				page, _, err := s.Store.List(t.Context(), apitest.Tenant, port.Page{Limit: 1})
				if err != nil {
					t.Fatal(err)
				}
				return answer, string(page[0].Work.Inference.Request)
			}
			var is struct{ ID string }
			if answer.Status != http.StatusOK || json.Unmarshal([]byte(answer.Body), &is) != nil {
				return answer, ""
			}
			id := is.ID[strings.LastIndexAny(is.ID, "-_")+1:]
			r, err := s.Store.Load(t.Context(), run.Ref{Tenant: apitest.Tenant, ID: "inf_" + id})
			if err != nil {
				t.Fatal(err)
			}
			return answer, fmt.Sprint(r.Work.Inference.MaxTokens, " ", string(r.Work.Inference.Request))
		}
		_, plain := stored("")
		for name, row := range of.rows {
			answer, request := stored(row.members)
			got := refused
			switch {
			case answer.Status == http.StatusOK && row.want == answers:
				got = answers
			case answer.Status == http.StatusOK && request == plain:
				got = ignored
			case answer.Status == http.StatusOK:
				got = works
			case answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"param":"`+name+`"`):
				got = "an error without its name"
			}
			if got != row.want {
				t.Errorf("%s: %s %s: got %s (%d %.300s), want %s", path, name, row.members, got, answer.Status, answer.Body, row.want)
			}
		}
	}
}
