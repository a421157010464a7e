package port

// Identity is who calls.
type Identity struct {
	Tenant    string
	Workspace string
	Subject   string
	Scopes    []string
}
