# The book's environment without CUDA: the same file as conda's and Binder's.  docker build -t attention-heads-book . && docker run -p 8888:8888 attention-heads-book
FROM condaforge/miniforge3:24.11.3-2
WORKDIR /book
COPY pyproject.toml setup.py README.md LICENSE environment.yml environment.lock requirements.lock ./
COPY helpers helpers
RUN mamba env update --quiet --name base --file environment.yml && conda clean --all --yes
COPY . .
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--allow-root", "--no-browser", "--notebook-dir=notebooks"]
