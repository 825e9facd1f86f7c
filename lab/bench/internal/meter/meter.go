// Package meter has the parts that the benchmarks share: medians, processor time, servers
// on a local port, and processes that carry out orders.
package meter

import (
	"encoding/json"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// Check ends the process if err is not nil.
func Check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Median returns the median of the values, or 0 without values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// ProcessorTime returns the processor time that this process has used so far.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	Check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Serve starts an HTTP server on a local port. It returns the server's address, such as
// http://127.0.0.1:8080, and a function that ends the server.
func Serve(handler http.Handler) (url string, end func() error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Check(err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: handler}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), server.Close
}

// Process is a second process of this program. It reads orders from standard input and
// writes reports to standard output, in JSON.
type Process struct {
	Orders  *json.Encoder
	Reports *json.Decoder
	Stop    func() error // ends the standard input and waits for the process
}

// Do gives an order to the process and reads the report.
func (p *Process) Do(order, report any) error {
	if err := p.Orders.Encode(order); err != nil {
		return err
	}
	return p.Reports.Decode(report)
}

// Start starts a second process of this program.
func Start(environment []string, args ...string) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(program, args...) // #nosec G204 -- starts the executable of this process
	c.Env = append(os.Environ(), environment...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &Process{Orders: json.NewEncoder(in), Reports: json.NewDecoder(out), Stop: func() error {
		in.Close()
		return c.Wait()
	}}
	return p, c.Start()
}
