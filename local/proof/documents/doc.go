// Package documents checks the repository's Markdown files. It has only tests.
//
// Every link, path, make target, Go package and sortie command line in them must exist. Every
// shell block is run in order and in its own workspace, with a Sortie on loopback, unless a
// comment before it gives a reason. They run in bash and in zsh.
//
//	<!-- not run: needs an AWS account -->
//	<!-- server -->            the block starts the Sortie of the blocks after it
//	<!-- schema: NAME -->      the JSON block matches that schema of openapi.yaml
//	<!-- generated: PATH -->   another test keeps the block equal to its source
//	<!-- printed: COMMAND -->  the block is what the command prints
package documents
