package bayes_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
)

// service answers requests for predictions of a regression. It links neither XLA nor C where its posterior predicts on
// compute.GoBackend: CGO_ENABLED=0 go build makes one static binary.
type service struct {
	posterior *bayes.Posterior
	like      *dataset.Dataset
	mostBytes int64
	turns     chan struct{} // as many requests are worked on at a time as there are processors: more would all be late
}

func newService(posterior *bayes.Posterior) service {
	s := service{posterior, posterior.Like(), 1 << 20, make(chan struct{}, runtime.GOMAXPROCS(0))}
	s.like.Target = "" // new rows have none
	return s
}

// request has rows as objects of their columns, such as {"rows": [{"area": 80, "town": "Ulm"}]}.
type request struct {
	Rows  []map[string]any `json:"rows"`
	Level float64          `json:"level"` // of the intervals; default .9
}

type answer struct {
	Mean, StdDev, Lower, Upper []float64
	Warnings                   []string
}

// ServeHTTP implements http.Handler.
func (s service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := s.answer(r.Context(), http.MaxBytesReader(w, r.Body, s.mostBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // who asked has gone
}

func (s service) answer(ctx context.Context, body io.Reader) (a answer, err error) {
	q := request{Level: .9}
	decoder := json.NewDecoder(body)
	decoder.UseNumber() // as they are written: 1000000 may be a category
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&q)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = cmp.Or(more, errors.New("there is more after the object"))
		}
	}
	if err != nil {
		return a, fmt.Errorf(`a request is {"rows": [...], "level": ...}: %w`, err)
	}
	rows, err := s.table(q.Rows)
	if err != nil {
		return a, err
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return a, ctx.Err()
	}
	p, err := s.posterior.Predict(ctx, rows.X)
	if err == nil {
		a.Warnings = p.Warnings
		a.Mean, err = p.Mean()
	}
	if err == nil {
		a.StdDev, err = p.StdDev()
	}
	if err == nil {
		a.Lower, a.Upper, err = p.Interval(q.Level)
	}
	return a, err
}

// table reads the rows as those of a file: what is wrong is refused by row and column.
func (s service) table(rows []map[string]any) (*dataset.Dataset, error) {
	if len(rows) == 0 {
		return nil, errors.New("there is no row to predict")
	}
	var text bytes.Buffer
	table := csv.NewWriter(&text)
	columns := slices.Sorted(maps.Keys(rows[0]))
	_ = table.Write(columns) // a buffer never fails
	for i, row := range rows {
		record := make([]string, len(columns))
		for k, column := range columns {
			record[k] = "NA" // not empty, since a line of nothing is no row
			if v := row[column]; v != nil {
				record[k] = fmt.Sprint(v)
			}
		}
		if len(row) > len(columns) {
			return nil, fmt.Errorf("row %d has other columns than the first", i)
		}
		_ = table.Write(record)
	}
	table.Flush()
	return dataset.ReadCSV(&text, dataset.CSVOptions{Delimiter: ',', Like: s.like})
}

// trained is what bayes.Load would read: y = 2 area + 3 where the town is Ulm, with noise N(0, 0.1^2).
func trained(tell func(error)) *bayes.Posterior {
	engine, err := compute.Open(compute.GoBackend)
	tell(err)
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .1}, Stochastic: bayes.All()}
	bound, err := model.Bind(3, 1)
	tell(err)
	phi := compute.Floats(compute.Float32, []float64{2, 0, 3, 0, 2, 0, 3, 0}, 2, bound.D)
	p, err := bayes.NewPosterior(bound, bayes.Draws{Phi: phi, LogWeights: bayes.EqualLogWeights(2)}, bayes.Origin{
		FeatureNames: []string{"area", "town=Köln", "town=Ulm"}, TargetNames: []string{"y"}, Engine: engine})
	tell(err)
	return p
}

// A service of predictions in a page of Go: JSON in, mean, standard deviation and interval of each row out.
func Example_serve() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	s := newService(trained(must)) // posterior, err := bayes.Load("data.posterior")
	server := httptest.NewServer(s)
	defer server.Close() // in a program: http.ListenAndServe(":8080", s)

	body := `{"rows": [{"area": 1, "town": "Ulm"}, {"area": 2, "town": "Köln"}]}`
	response, err := http.Post(server.URL, "application/json", strings.NewReader(body))
	must(err)
	defer response.Body.Close()
	var a answer
	must(json.NewDecoder(response.Body).Decode(&a))
	fmt.Printf("mean %.2f, sd %.2f, 90 %% from %.2f to %.2f\n", a.Mean, a.StdDev, a.Lower, a.Upper)
	// Output:
	// mean [5.00 4.00], sd [0.10 0.10], 90 % from [4.84 3.84] to [5.16 4.16]
}

// What is wrong with a request is refused, with its row and column; requests at a time have their own answers.
func TestServe(t *testing.T) {
	s := newService(trained(func(err error) { computetest.NoError(t, err) }))
	s.mostBytes = 2000
	post := func(body string) (int, string) {
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		return answer.Code, answer.Body.String()
	}
	row := `{"area": 1, "town": "Ulm"}`
	for _, c := range []struct{ body, want string }{
		{`{"rows": []}`, "no row"},
		{`{"rows": [{"area": 1}]}`, `a column "town", with categories`},
		{`{"rows": [` + row + `, {"area": "wide", "town": "Ulm"}]}`, `row 1 (line 3), column "area"`},
		{`{"rows": [{"area": NaN, "town": "Ulm"}]}`, "invalid character"},
		{`{"rows": [{"area": "NaN", "town": "Ulm"}]}`, `column "area": the value is missing`},
		{`{"rows": [{"area": null, "town": "Ulm"}]}`, `column "area": the value is missing`},
		{`{"rows": [{"area": null}]}`, `column "town"`},
		{`{"rows": [{"area": 1, "town": "Rom"}]}`, `"Rom" is none of`},
		{`{"rows": [{"area": [1], "town": "Ulm"}]}`, "cannot read"},
		{`{"rows": [` + row + `, {"area": 1, "town": "Ulm", "more": 2}]}`, "other columns"},
		{`{"rows": [` + row + `], "level": 2}`, "level is 2"},
		{`{"rows": [` + strings.Repeat(row+",", 500) + row + `]}`, "too large"},
		{`{`, "EOF"},
		{`{"rows": [{"area": 1, "town": 1000000}]}`, `"1000000" is none of`},
		{`{"rows": [` + row + `], "levl": 0.5}`, `unknown field "levl"`},
		{`{"rows": [` + row + `]} {"rows": []}`, "more after the object"},
	} {
		if status, text := post(c.body); status != http.StatusBadRequest || !strings.Contains(text, c.want) {
			t.Errorf("%.80s: %d %q, want %q", c.body, status, text, c.want)
		}
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			status, text := post(fmt.Sprintf(`{"rows": [{"area": %d, "town": "Köln"}]}`, i))
			if status != http.StatusOK || !strings.Contains(text, fmt.Sprintf(`"Mean":[%d]`, 2*i)) {
				t.Errorf("area %d: %d %s", i, status, text)
			}
		})
	}
	all.Wait()
}

// A server that shuts down answers the requests that it has.
func TestServeShutsDown(t *testing.T) {
	const clients = 8
	s := newService(trained(func(err error) { computetest.NoError(t, err) }))
	var arrived, answered sync.WaitGroup
	begun := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Done()
		<-begun
		s.ServeHTTP(w, r)
	}))
	defer server.Close()
	arrived.Add(clients)
	for range clients {
		answered.Go(func() {
			r, err := http.Post(server.URL, "application/json", strings.NewReader(`{"rows": [{"area": 1, "town": "Ulm"}]}`))
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			if text, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(text), `"Mean":[5]`) {
				t.Errorf("%s, error %v", text, err)
			}
		})
	}
	arrived.Wait()
	ended := make(chan error)
	go func() { ended <- server.Config.Shutdown(context.Background()) }()
	close(begun)
	answered.Wait()
	computetest.NoError(t, <-ended)
}
