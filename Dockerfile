# The book's environment without CUDA: the same file as conda's and Binder's.  docker build -t attention-heads-book . && docker run -p 8888:8888 attention-heads-book
FROM condaforge/miniforge3:24.11.3-2
WORKDIR /book
COPY pyproject.toml setup.py README.md LICENSE environment.yml environment.lock requirements.lock ./
COPY helpers helpers
# An environment of its own: that of Miniforge has another Python
RUN mamba env create --quiet --file environment.yml && conda clean --all --yes
ENV PATH=/opt/conda/envs/attention-heads-book/bin:$PATH
RUN python -m helpers fetch minilm
COPY . .
RUN python -m helpers build notebooks --to _build/lab && jupyter trust _build/lab/notebooks/*.ipynb
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--allow-root", "--no-browser", "--notebook-dir=_build/lab/notebooks"]
