package contract

import (
	"encoding/json"
)

// Program is the stored work of a task of kind job.
type Program struct {
	Image   string                 `json:"image"`
	Command []string               `json:"command,omitempty"`
	Env     map[string]EnvVariable `json:"env,omitempty"`
	// Input is absent if the standard input is empty.
	Input *ProgramInput `json:"input,omitempty"`
	// Output is absent if the program writes no output file.
	Output     *ProgramOutput `json:"output,omitempty"`
	Completion string         `json:"completion"`
	ExitCodes  *ExitCodes     `json:"exitCodes,omitempty"`
	Logs       string         `json:"logs"`
}

// EnvVariable is the value of an environment variable or a reference to the secret with the
// value. In JSON, a value is a string and a reference is an object.
type EnvVariable struct{ Value, SecretRef string }

// secretRef is the JSON form of a variable whose value is a secret.
type secretRef struct {
	SecretRef string `json:"secretRef"`
}

// MarshalJSON implements json.Marshaler.
func (v EnvVariable) MarshalJSON() ([]byte, error) {
	if v.SecretRef != "" {
		return json.Marshal(secretRef{v.SecretRef})
	}
	return json.Marshal(v.Value)
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *EnvVariable) UnmarshalJSON(text []byte) error {
	*v = EnvVariable{}
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &v.Value)
	}
	var ref secretRef
	err := json.Unmarshal(text, &ref)
	v.SecretRef = ref.SecretRef
	return err
}

// ProgramInput is a stored standard input.
type ProgramInput struct {
	// Size is in bytes.
	Size int64 `json:"size"`
}

// ExitCodes maps the exit codes of a job's program to results.
type ExitCodes struct {
	Success []int `json:"success,omitempty"`
	Retry   []int `json:"retry,omitempty"`
	Fail    []int `json:"fail,omitempty"`
}
