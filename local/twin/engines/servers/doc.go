// Package servers installs and starts inference servers of other authors, for tests: llama-server,
// built from its source, and vLLM, both with the same model of tinymodel, and Triton's server
// with a model that has no weights. They run on the processor, and no weights are downloaded.
//
// An installation is in ${XDG_CACHE_HOME:-~/.cache}/sortie, once for each state of its lock
// file. It needs pip with access to its packages. llama-server needs Python 3.13, cmake and a
// C++ compiler, Triton needs Python 3.11 and its library, vLLM Python 3.11 and a C compiler. What
// is missing is an error with the command that installs it.
package servers
